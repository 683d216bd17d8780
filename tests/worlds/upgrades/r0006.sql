BEGIN TRANSACTION;
CREATE TABLE cachemgr_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT cachemgr_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "cachemgr_schema_version" VALUES('0006');
CREATE TABLE caches (
	id VARCHAR(32) NOT NULL, 
	namespace TEXT NOT NULL, 
	name TEXT NOT NULL, 
	namespace_key TEXT NOT NULL, 
	name_key TEXT NOT NULL, 
	comment TEXT, 
	definition TEXT NOT NULL, 
	definition_hash TEXT NOT NULL, 
	context JSON NOT NULL, 
	settings JSON NOT NULL, 
	"plan" JSON, 
	plan_version TEXT, 
	columns JSON NOT NULL, 
	partition_by JSON NOT NULL, 
	cluster_by JSON NOT NULL, 
	location TEXT NOT NULL, 
	properties JSON NOT NULL, 
	refresh_trigger JSON NOT NULL, 
	refresh_mode VARCHAR(32) NOT NULL, 
	freshness VARCHAR(32) NOT NULL, 
	max_staleness_seconds BIGINT, 
	rewrite_enabled BOOLEAN NOT NULL, 
	paused BOOLEAN NOT NULL, 
	narrowed BOOLEAN NOT NULL, 
	owner TEXT, 
	created_at DATETIME NOT NULL, 
	updated_at DATETIME NOT NULL, 
	dropped_at DATETIME, 
	version INTEGER NOT NULL, 
	published_refresh_id VARCHAR(32), 
	revision BIGINT NOT NULL, depends_on JSON, 
	CONSTRAINT pk_caches PRIMARY KEY (id)
);
INSERT INTO "caches" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b','world','by_shop','world','by_shop',NULL,'SELECT shop, SUM(amount) AS s, COUNT(*) AS n FROM sales GROUP BY shop','b9167ce57e4ff933f7df850e766862dcc807b181a597822fd6b2d96989e3736c','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["shop", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["shop", "int", false], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/d8a62e73abbb4ef49789cd1e7f792d5b','{}','{"kind": "ON_DEMAND"}','AUTO','STRICT',NULL,1,0,1,'@USER@','2026-11-28 19:53:27.545212','2026-11-28 19:53:27.545212',NULL,1,'c60803b9d248433bab7968fbc2e6c23a',11,'[]');
INSERT INTO "caches" VALUES('a5193cda70a940e4818adb78ad5d168a','world','cube','world','cube','all','SELECT town, day, SUM(amount) AS s, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY CUBE (town, day)','4a33bfad872f06aeac6289b7781848c33675e0bd3ab07e478dcef42195ffe0fd','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], null, null], [1, [0], null, null], [2, [1], null, null], [3, [], null, null]], "rows": null, "bytes": null, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["town", "string", true], ["day", "date", true], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/a5193cda70a940e4818adb78ad5d168a','{}','{"kind": "ON_DEMAND"}','AUTO','MAX_STALENESS',3600,1,0,0,'@USER@','2026-11-28 19:53:28.011112','2026-11-28 19:53:28.011112',NULL,1,'78e1d742639543ebb3d9c072a5310062',9,'[]');
INSERT INTO "caches" VALUES('3322aca8fe764b9881affbef4160fc69','world','never','world','never',NULL,'SELECT MAX(id) AS m FROM sales','0def8a1f51ac5a968ae4bf4dfe0b0074f7af763d16e63f1fa4a0fd5f0a275fa6','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.never", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [], "measures": [["m", ["a", "max", [["c", 0, "id", "bigint", 0]], "bigint", 1, 0, null, []], 0], ["__rows", ["a", "count", [], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["m"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["m", "bigint", true]]','[]','[]','@ROOT@/caches/3322aca8fe764b9881affbef4160fc69','{}','{"kind": "EVERY", "seconds": 3600}','FULL','STRICT',NULL,1,0,0,'@USER@','2026-11-28 19:53:28.255419','2026-11-28 19:53:28.255419',NULL,1,NULL,4,'[]');
CREATE TABLE commit_numbers (
	cache_id VARCHAR(32) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_commit_numbers PRIMARY KEY (cache_id), 
	CONSTRAINT fk_commit_numbers_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "commit_numbers" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b',2);
INSERT INTO "commit_numbers" VALUES('a5193cda70a940e4818adb78ad5d168a',2);
INSERT INTO "commit_numbers" VALUES('3322aca8fe764b9881affbef4160fc69',0);
CREATE TABLE grants (
	cache_id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (cache_id, principal), 
	CONSTRAINT fk_grants_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "grants" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b','ann');
INSERT INTO "grants" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b','@USER@');
CREATE TABLE grouping_sets (
	cache_id VARCHAR(32) NOT NULL, 
	grouping_id BIGINT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	columns JSON NOT NULL, 
	rows BIGINT, 
	bytes BIGINT, 
	CONSTRAINT pk_grouping_sets PRIMARY KEY (cache_id, grouping_id), 
	CONSTRAINT fk_grouping_sets_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "grouping_sets" VALUES('a5193cda70a940e4818adb78ad5d168a',0,0,'["town", "day"]',5,1907);
INSERT INTO "grouping_sets" VALUES('a5193cda70a940e4818adb78ad5d168a',1,1,'["town"]',2,1751);
INSERT INTO "grouping_sets" VALUES('a5193cda70a940e4818adb78ad5d168a',2,2,'["day"]',4,1829);
INSERT INTO "grouping_sets" VALUES('a5193cda70a940e4818adb78ad5d168a',3,3,'[]',1,1682);
CREATE TABLE idempotency_keys (
	principal TEXT NOT NULL, 
	"key" VARCHAR(128) NOT NULL, 
	request VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	status INTEGER, 
	body JSON, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (principal, "key")
);
CREATE TABLE leases (
	cache_id VARCHAR(32) NOT NULL, 
	holder TEXT, 
	token BIGINT NOT NULL, 
	expires_at DATETIME, 
	CONSTRAINT pk_leases PRIMARY KEY (cache_id), 
	CONSTRAINT fk_leases_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "leases" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b',NULL,2,NULL);
INSERT INTO "leases" VALUES('a5193cda70a940e4818adb78ad5d168a',NULL,2,NULL);
INSERT INTO "leases" VALUES('3322aca8fe764b9881affbef4160fc69',NULL,0,NULL);
CREATE TABLE record_preserving_joins (
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	name_key TEXT NOT NULL, 
	definition TEXT NOT NULL, 
	"left" JSON NOT NULL, 
	"right" JSON NOT NULL, 
	keys JSON NOT NULL, 
	validated BOOLEAN NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	message TEXT, 
	validated_versions JSON NOT NULL, 
	validated_at DATETIME, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_record_preserving_joins PRIMARY KEY (id), 
	CONSTRAINT uq_record_preserving_joins_name_key UNIQUE (name_key)
);
INSERT INTO "record_preserving_joins" VALUES('0b6b83de26554cddaddc3a44ca3e330d','sales_shops','sales_shops','CREATE RECORD PRESERVING JOIN sales_shops AS
  sales INNER JOIN shops ON sales.shop = shops.shop
  PRESERVES sales','{"name": "world.sales", "location": "file:@ROOT@/tables/sales", "table_id": "b4985b1c-a4b7-4789-a016-0741f7bb0a51"}','{"name": "world.shops", "location": "file:@ROOT@/tables/shops", "table_id": "61fb1488-dc06-440d-8d70-46e4fa882275"}','[["shop", "shop"]]',1,'VALID',NULL,'{"file:@ROOT@/tables/sales": ["b4985b1c-a4b7-4789-a016-0741f7bb0a51", 2], "file:@ROOT@/tables/shops": ["61fb1488-dc06-440d-8d70-46e4fa882275", 1]}','2026-11-28 19:53:50.675025','2026-11-28 19:53:27.335070');
CREATE TABLE refresh_requests (
	id VARCHAR(32) NOT NULL, 
	cache_id VARCHAR(32) NOT NULL, 
	mode VARCHAR(32), 
	origin VARCHAR(16) NOT NULL, 
	why TEXT NOT NULL, 
	requested_by TEXT, 
	requested_at DATETIME NOT NULL, 
	CONSTRAINT pk_refresh_requests PRIMARY KEY (id), 
	CONSTRAINT fk_refresh_requests_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE, 
	CONSTRAINT uq_refresh_requests_cache_id UNIQUE (cache_id)
);
CREATE TABLE "refresh_runs" (
	id VARCHAR(32) NOT NULL, 
	cache_id VARCHAR(32) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	mode VARCHAR(32) NOT NULL, 
	reason TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	fencing_token BIGINT NOT NULL, 
	commit_number BIGINT, 
	parent_version BIGINT, 
	cache_version BIGINT, 
	started_at DATETIME NOT NULL, 
	finished_at DATETIME, 
	rows BIGINT, 
	bytes BIGINT, 
	error TEXT, 
	stages JSON NOT NULL, 
	facts JSON NOT NULL, 
	"plan" JSON, 
	origin VARCHAR(16) DEFAULT 'STATEMENT' NOT NULL, 
	requested_by TEXT, 
	requested_at DATETIME, 
	cancel_requested BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_refresh_runs PRIMARY KEY (id), 
	CONSTRAINT fk_refresh_runs_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "refresh_runs" VALUES('737a3b50b82644bf85f6d86714fb61eb','d8a62e73abbb4ef49789cd1e7f792d5b','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:53:28.631886','2026-11-28 19:53:36.466049',2,1291,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "776ee40d29b67c6be013bef6afc5501f6ffe5a952b6b78a1b097e0ff5d1f6bb0", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1291, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('a32169af96ff46d8be071865c1367cb4','a5193cda70a940e4818adb78ad5d168a','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:53:36.765227','2026-11-28 19:53:44.386044',10,7224,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "6660f726b23ae0eda2e0d607f8070e5f3ed143dee4ee7f37ce073c45bdc151fd", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 4, 1927], [1, [0], 2, 1796], [2, [1], 3, 1819], [3, [], 1, 1682]], "rows": 10, "bytes": 7224, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('c60803b9d248433bab7968fbc2e6c23a','d8a62e73abbb4ef49789cd1e7f792d5b','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:53:45.070237','2026-11-28 19:53:50.409149',2,1246,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "776ee40d29b67c6be013bef6afc5501f6ffe5a952b6b78a1b097e0ff5d1f6bb0", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1246, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('78e1d742639543ebb3d9c072a5310062','a5193cda70a940e4818adb78ad5d168a','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:53:50.493583','2026-11-28 19:53:56.500953',12,7169,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "6660f726b23ae0eda2e0d607f8070e5f3ed143dee4ee7f37ce073c45bdc151fd", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 5, 1907], [1, [0], 2, 1751], [2, [1], 4, 1829], [3, [], 1, 1682]], "rows": 12, "bytes": 7169, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
CREATE TABLE registry_revision (
	id INTEGER NOT NULL, 
	revision BIGINT NOT NULL, epoch VARCHAR(32) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_registry_revision PRIMARY KEY (id)
);
INSERT INTO "registry_revision" VALUES(1,13,'c94fee6437ba4cfd8ebab8ff509f736a');
CREATE TABLE restricted_tables (
	id VARCHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	location TEXT NOT NULL, 
	table_id TEXT, 
	restricted_by TEXT NOT NULL, 
	restricted_at DATETIME NOT NULL, 
	CONSTRAINT pk_restricted_tables PRIMARY KEY (id), 
	CONSTRAINT uq_restricted_tables_location UNIQUE (location)
);
CREATE TABLE "rewrite_decisions" (
	id INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	session_id TEXT NOT NULL, 
	query_hash TEXT NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	caches JSON NOT NULL, 
	grouping_set TEXT, 
	reasons JSON NOT NULL, 
	millis FLOAT NOT NULL, 
	principal TEXT, 
	batch VARCHAR(64), 
	position INTEGER, 
	CONSTRAINT pk_rewrite_decisions PRIMARY KEY (id), 
	CONSTRAINT uq_rewrite_decisions_batch_position UNIQUE (batch, position)
);
INSERT INTO "rewrite_decisions" VALUES(1,'2026-11-28 19:53:56.978872','7c9c71b2-37fe-4d1a-98dd-a026804b8697','10d0584db6a5cfb6','HIT','["world.by_shop"]',NULL,'[]',2.71235100012745533604e+00,NULL,NULL,NULL);
INSERT INTO "rewrite_decisions" VALUES(2,'2026-11-28 19:53:57.535397','7c9c71b2-37fe-4d1a-98dd-a026804b8697','7ead5d9b9d3f6884','HIT','["world.cube"]','(town)','[]',1.27772900009404111187e+00,NULL,NULL,NULL);
CREATE TABLE schedules (
	cache_id VARCHAR(32) NOT NULL, 
	epoch BIGINT NOT NULL, 
	failures INTEGER NOT NULL, 
	retry_at DATETIME, 
	behind_since DATETIME, 
	paused_because TEXT, 
	CONSTRAINT pk_schedules PRIMARY KEY (cache_id), 
	CONSTRAINT fk_schedules_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "schedules" VALUES('d8a62e73abbb4ef49789cd1e7f792d5b',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('a5193cda70a940e4818adb78ad5d168a',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('3322aca8fe764b9881affbef4160fc69',0,0,NULL,NULL,NULL);
CREATE TABLE snapshot_tables (
	refresh_id VARCHAR(32) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	location TEXT NOT NULL, 
	table_id TEXT, 
	version BIGINT, 
	commit_timestamp_ms BIGINT, 
	CONSTRAINT pk_snapshot_tables PRIMARY KEY (refresh_id, ordinal), 
	CONSTRAINT fk_snapshot_tables_refresh_id FOREIGN KEY(refresh_id) REFERENCES refresh_runs (id) ON DELETE CASCADE
);
INSERT INTO "snapshot_tables" VALUES('737a3b50b82644bf85f6d86714fb61eb',0,'world.sales','file:@ROOT@/tables/sales','b4985b1c-a4b7-4789-a016-0741f7bb0a51',1,1795895590797);
INSERT INTO "snapshot_tables" VALUES('a32169af96ff46d8be071865c1367cb4',0,'world.sales','file:@ROOT@/tables/sales','b4985b1c-a4b7-4789-a016-0741f7bb0a51',1,1795895590797);
INSERT INTO "snapshot_tables" VALUES('a32169af96ff46d8be071865c1367cb4',1,'world.shops','file:@ROOT@/tables/shops','61fb1488-dc06-440d-8d70-46e4fa882275',1,1795895592409);
INSERT INTO "snapshot_tables" VALUES('c60803b9d248433bab7968fbc2e6c23a',0,'world.sales','file:@ROOT@/tables/sales','b4985b1c-a4b7-4789-a016-0741f7bb0a51',2,1795895624813);
INSERT INTO "snapshot_tables" VALUES('78e1d742639543ebb3d9c072a5310062',0,'world.sales','file:@ROOT@/tables/sales','b4985b1c-a4b7-4789-a016-0741f7bb0a51',2,1795895624813);
INSERT INTO "snapshot_tables" VALUES('78e1d742639543ebb3d9c072a5310062',1,'world.shops','file:@ROOT@/tables/shops','61fb1488-dc06-440d-8d70-46e4fa882275',1,1795895592409);
CREATE TABLE tokens (
	id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME, 
	revoked_at DATETIME, 
	CONSTRAINT pk_tokens PRIMARY KEY (id)
);
CREATE INDEX ix_caches_revision ON caches (revision);
CREATE UNIQUE INDEX uq_caches_live_name ON caches (namespace_key, name_key) WHERE dropped_at IS NULL;
CREATE INDEX ix_refresh_requests_requested_at ON refresh_requests (requested_at);
CREATE INDEX ix_refresh_runs_cache_id_started_at ON refresh_runs (cache_id, started_at);
CREATE INDEX ix_rewrite_decisions_at ON rewrite_decisions (at);
COMMIT;