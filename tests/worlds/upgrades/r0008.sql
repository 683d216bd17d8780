BEGIN TRANSACTION;
CREATE TABLE base_tables (
	location TEXT NOT NULL, 
	name TEXT NOT NULL, 
	table_id TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	commit_timestamp_ms BIGINT NOT NULL, 
	columns TEXT NOT NULL, 
	CONSTRAINT pk_base_tables PRIMARY KEY (location, name)
);
INSERT INTO "base_tables" VALUES('file:@ROOT@/tables/sales','world.sales','9315bb4e-475a-43d4-bc3f-a8372a7127ca',2,1795895851225,'{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}},{"name":"shop","type":"integer","nullable":false,"metadata":{}},{"name":"day","type":"date","nullable":true,"metadata":{}},{"name":"amount","type":"decimal(10,2)","nullable":true,"metadata":{}}]}');
INSERT INTO "base_tables" VALUES('file:@ROOT@/tables/shops','world.shops','a91f8f1d-9940-4e55-98da-c289c05f0c21',1,1795895800661,'{"type":"struct","fields":[{"name":"shop","type":"integer","nullable":false,"metadata":{}},{"name":"town","type":"string","nullable":true,"metadata":{}}]}');
CREATE TABLE cachemgr_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT cachemgr_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "cachemgr_schema_version" VALUES('0008');
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
INSERT INTO "caches" VALUES('41f29582b58b47749b4ec3707061af03','world','by_shop','world','by_shop',NULL,'SELECT shop, SUM(amount) AS s, COUNT(*) AS n FROM sales GROUP BY shop','b9167ce57e4ff933f7df850e766862dcc807b181a597822fd6b2d96989e3736c','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["shop", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["shop", "int", false], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/41f29582b58b47749b4ec3707061af03','{}','{"kind": "ON_DEMAND"}','AUTO','STRICT',NULL,1,0,1,'@USER@','2026-11-28 19:57:03.897463','2026-11-28 19:57:03.897463',NULL,1,'8e7805a320564da79fdd7e50b4e381d9',12,'[]');
INSERT INTO "caches" VALUES('56bbb409f9154f799537d79e0d25c1c5','world','cube','world','cube','all','SELECT town, day, SUM(amount) AS s, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY CUBE (town, day)','4a33bfad872f06aeac6289b7781848c33675e0bd3ab07e478dcef42195ffe0fd','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], null, null], [1, [0], null, null], [2, [1], null, null], [3, [], null, null]], "rows": null, "bytes": null, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["town", "string", true], ["day", "date", true], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/56bbb409f9154f799537d79e0d25c1c5','{}','{"kind": "ON_DEMAND"}','AUTO','MAX_STALENESS',3600,1,0,0,'@USER@','2026-11-28 19:57:04.363596','2026-11-28 19:57:04.363596',NULL,1,'2114689dc2a3479e88f431462b6357e3',10,'[]');
INSERT INTO "caches" VALUES('ebe36ba72f9b45c6932b5f26cf30094c','world','never','world','never',NULL,'SELECT MAX(id) AS m FROM sales','0def8a1f51ac5a968ae4bf4dfe0b0074f7af763d16e63f1fa4a0fd5f0a275fa6','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.never", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [], "measures": [["m", ["a", "max", [["c", 0, "id", "bigint", 0]], "bigint", 1, 0, null, []], 0], ["__rows", ["a", "count", [], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["m"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["m", "bigint", true]]','[]','[]','@ROOT@/caches/ebe36ba72f9b45c6932b5f26cf30094c','{}','{"kind": "EVERY", "seconds": 3600}','FULL','STRICT',NULL,1,0,0,'@USER@','2026-11-28 19:57:04.875747','2026-11-28 19:57:04.875747',NULL,1,NULL,5,'[]');
CREATE TABLE commit_numbers (
	cache_id VARCHAR(32) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_commit_numbers PRIMARY KEY (cache_id), 
	CONSTRAINT fk_commit_numbers_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "commit_numbers" VALUES('41f29582b58b47749b4ec3707061af03',2);
INSERT INTO "commit_numbers" VALUES('56bbb409f9154f799537d79e0d25c1c5',2);
INSERT INTO "commit_numbers" VALUES('ebe36ba72f9b45c6932b5f26cf30094c',0);
CREATE TABLE grants (
	cache_id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (cache_id, principal), 
	CONSTRAINT fk_grants_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "grants" VALUES('41f29582b58b47749b4ec3707061af03','ann');
INSERT INTO "grants" VALUES('41f29582b58b47749b4ec3707061af03','@USER@');
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
INSERT INTO "grouping_sets" VALUES('56bbb409f9154f799537d79e0d25c1c5',0,0,'["town", "day"]',5,1907);
INSERT INTO "grouping_sets" VALUES('56bbb409f9154f799537d79e0d25c1c5',1,1,'["town"]',2,1751);
INSERT INTO "grouping_sets" VALUES('56bbb409f9154f799537d79e0d25c1c5',2,2,'["day"]',4,1829);
INSERT INTO "grouping_sets" VALUES('56bbb409f9154f799537d79e0d25c1c5',3,3,'[]',1,1682);
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
INSERT INTO "leases" VALUES('41f29582b58b47749b4ec3707061af03',NULL,2,NULL);
INSERT INTO "leases" VALUES('56bbb409f9154f799537d79e0d25c1c5',NULL,2,NULL);
INSERT INTO "leases" VALUES('ebe36ba72f9b45c6932b5f26cf30094c',NULL,0,NULL);
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
INSERT INTO "record_preserving_joins" VALUES('1924806dfafa48ef9af93293ab1a4ca7','sales_shops','sales_shops','CREATE RECORD PRESERVING JOIN sales_shops AS
  sales INNER JOIN shops ON sales.shop = shops.shop
  PRESERVES sales','{"name": "world.sales", "location": "file:@ROOT@/tables/sales", "table_id": "9315bb4e-475a-43d4-bc3f-a8372a7127ca"}','{"name": "world.shops", "location": "file:@ROOT@/tables/shops", "table_id": "a91f8f1d-9940-4e55-98da-c289c05f0c21"}','[["shop", "shop"]]',1,'VALID',NULL,'{"file:@ROOT@/tables/sales": ["9315bb4e-475a-43d4-bc3f-a8372a7127ca", 2], "file:@ROOT@/tables/shops": ["a91f8f1d-9940-4e55-98da-c289c05f0c21", 1]}','2026-11-28 19:57:42.201499','2026-11-28 19:57:03.426770');
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
INSERT INTO "refresh_runs" VALUES('503b1fe5a3374190b1ddc14dd4c55020','41f29582b58b47749b4ec3707061af03','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:57:05.273245','2026-11-28 19:57:19.208801',2,1291,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "c58fcce023c1f168b83da651fd3893ebcc20b04e3128f6a74dd0d1bc10edf910", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1291, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('5a37d23658ad41fdbf602e879b46266c','56bbb409f9154f799537d79e0d25c1c5','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:57:19.801421','2026-11-28 19:57:30.592335',10,7224,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "21732ffabaf73829987b22741d7670443e31930e0ff8c8a0f22f3a0177ac9fd6", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 4, 1927], [1, [0], 2, 1796], [2, [1], 3, 1819], [3, [], 1, 1682]], "rows": 10, "bytes": 7224, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('8e7805a320564da79fdd7e50b4e381d9','41f29582b58b47749b4ec3707061af03','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:57:31.420149','2026-11-28 19:57:41.300968',2,1246,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "c58fcce023c1f168b83da651fd3893ebcc20b04e3128f6a74dd0d1bc10edf910", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1246, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('2114689dc2a3479e88f431462b6357e3','56bbb409f9154f799537d79e0d25c1c5','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:57:41.537381','2026-11-28 19:57:56.931849',12,7169,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "21732ffabaf73829987b22741d7670443e31930e0ff8c8a0f22f3a0177ac9fd6", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 5, 1907], [1, [0], 2, 1751], [2, [1], 4, 1829], [3, [], 1, 1682]], "rows": 12, "bytes": 7169, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
CREATE TABLE registry_revision (
	id INTEGER NOT NULL, 
	revision BIGINT NOT NULL, epoch VARCHAR(32) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_registry_revision PRIMARY KEY (id)
);
INSERT INTO "registry_revision" VALUES(1,14,'23e77cacc03c4c80aeb129a00cb371f1');
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
INSERT INTO "rewrite_decisions" VALUES(1,'2026-11-28 19:57:58.138116','aa9df19c-aa5c-4e74-bfe2-798e8b4e55cb','36e34ffd25ca37ab','HIT','["world.by_shop"]',NULL,'[]',1.09430019999763317173e+01,NULL,'6f5919228c11417dae74ae18997143f0',0);
INSERT INTO "rewrite_decisions" VALUES(2,'2026-11-28 19:58:00.051017','aa9df19c-aa5c-4e74-bfe2-798e8b4e55cb','7511b32f66a1bc3e','HIT','["world.cube"]','(town)','[]',1.95198679998611623886e+01,NULL,'2678cc2ac0b44065a03bc62c84f09e63',0);
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
INSERT INTO "schedules" VALUES('41f29582b58b47749b4ec3707061af03',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('56bbb409f9154f799537d79e0d25c1c5',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('ebe36ba72f9b45c6932b5f26cf30094c',0,0,NULL,NULL,NULL);
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
INSERT INTO "snapshot_tables" VALUES('503b1fe5a3374190b1ddc14dd4c55020',0,'world.sales','file:@ROOT@/tables/sales','9315bb4e-475a-43d4-bc3f-a8372a7127ca',1,1795895798637);
INSERT INTO "snapshot_tables" VALUES('5a37d23658ad41fdbf602e879b46266c',0,'world.sales','file:@ROOT@/tables/sales','9315bb4e-475a-43d4-bc3f-a8372a7127ca',1,1795895798637);
INSERT INTO "snapshot_tables" VALUES('5a37d23658ad41fdbf602e879b46266c',1,'world.shops','file:@ROOT@/tables/shops','a91f8f1d-9940-4e55-98da-c289c05f0c21',1,1795895800661);
INSERT INTO "snapshot_tables" VALUES('8e7805a320564da79fdd7e50b4e381d9',0,'world.sales','file:@ROOT@/tables/sales','9315bb4e-475a-43d4-bc3f-a8372a7127ca',2,1795895851225);
INSERT INTO "snapshot_tables" VALUES('2114689dc2a3479e88f431462b6357e3',0,'world.sales','file:@ROOT@/tables/sales','9315bb4e-475a-43d4-bc3f-a8372a7127ca',2,1795895851225);
INSERT INTO "snapshot_tables" VALUES('2114689dc2a3479e88f431462b6357e3',1,'world.shops','file:@ROOT@/tables/shops','a91f8f1d-9940-4e55-98da-c289c05f0c21',1,1795895800661);
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
CREATE INDEX ix_refresh_runs_cache_id_fencing_token ON refresh_runs (cache_id, fencing_token);
CREATE INDEX ix_refresh_runs_cache_id_state_fencing_token ON refresh_runs (cache_id, state, fencing_token);
COMMIT;