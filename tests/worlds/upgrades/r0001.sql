BEGIN TRANSACTION;
CREATE TABLE cachemgr_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT cachemgr_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "cachemgr_schema_version" VALUES('0001');
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
	revision BIGINT NOT NULL, 
	CONSTRAINT pk_caches PRIMARY KEY (id)
);
INSERT INTO "caches" VALUES('8ac12b3da3154d41bc035e1ba2429d26','world','by_shop','world','by_shop',NULL,'SELECT shop, SUM(amount) AS s, COUNT(*) AS n FROM sales GROUP BY shop','b9167ce57e4ff933f7df850e766862dcc807b181a597822fd6b2d96989e3736c','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["shop", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["shop", "int", false], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/8ac12b3da3154d41bc035e1ba2429d26','{}','{"kind": "ON_DEMAND"}','AUTO','STRICT',NULL,1,0,1,'@USER@','2026-11-28 19:45:12.840340','2026-11-28 19:45:12.840340',NULL,1,'92ba7c4bd62f4fb3b8a4d2a5cac90748',11);
INSERT INTO "caches" VALUES('628793b395554d3c8cc9032b3bceee0b','world','cube','world','cube','all','SELECT town, day, SUM(amount) AS s, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY CUBE (town, day)','4a33bfad872f06aeac6289b7781848c33675e0bd3ab07e478dcef42195ffe0fd','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], null, null], [1, [0], null, null], [2, [1], null, null], [3, [], null, null]], "rows": null, "bytes": null, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["town", "string", true], ["day", "date", true], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/628793b395554d3c8cc9032b3bceee0b','{}','{"kind": "ON_DEMAND"}','AUTO','MAX_STALENESS',3600,1,0,0,'@USER@','2026-11-28 19:45:13.113874','2026-11-28 19:45:13.113874',NULL,1,'d33f202158c045979ea8429003a710a4',9);
INSERT INTO "caches" VALUES('7a008580406e4b69bf4e951d43ef000f','world','never','world','never',NULL,'SELECT MAX(id) AS m FROM sales','0def8a1f51ac5a968ae4bf4dfe0b0074f7af763d16e63f1fa4a0fd5f0a275fa6','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.fieldId.write.enabled": "true", "spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.never", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [], "measures": [["m", ["a", "max", [["c", 0, "id", "bigint", 0]], "bigint", 1, 0, null, []], 0], ["__rows", ["a", "count", [], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["m"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["m", "bigint", true]]','[]','[]','@ROOT@/caches/7a008580406e4b69bf4e951d43ef000f','{}','{"kind": "EVERY", "seconds": 3600}','FULL','STRICT',NULL,1,0,0,'@USER@','2026-11-28 19:45:13.286113','2026-11-28 19:45:13.286113',NULL,1,NULL,4);
CREATE TABLE commit_numbers (
	cache_id VARCHAR(32) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_commit_numbers PRIMARY KEY (cache_id), 
	CONSTRAINT fk_commit_numbers_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "commit_numbers" VALUES('8ac12b3da3154d41bc035e1ba2429d26',2);
INSERT INTO "commit_numbers" VALUES('628793b395554d3c8cc9032b3bceee0b',2);
INSERT INTO "commit_numbers" VALUES('7a008580406e4b69bf4e951d43ef000f',0);
CREATE TABLE grants (
	cache_id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (cache_id, principal), 
	CONSTRAINT fk_grants_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "grants" VALUES('8ac12b3da3154d41bc035e1ba2429d26','ann');
INSERT INTO "grants" VALUES('8ac12b3da3154d41bc035e1ba2429d26','@USER@');
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
INSERT INTO "grouping_sets" VALUES('628793b395554d3c8cc9032b3bceee0b',0,0,'["town", "day"]',5,1907);
INSERT INTO "grouping_sets" VALUES('628793b395554d3c8cc9032b3bceee0b',1,1,'["town"]',2,1751);
INSERT INTO "grouping_sets" VALUES('628793b395554d3c8cc9032b3bceee0b',2,2,'["day"]',4,1829);
INSERT INTO "grouping_sets" VALUES('628793b395554d3c8cc9032b3bceee0b',3,3,'[]',1,1682);
CREATE TABLE leases (
	cache_id VARCHAR(32) NOT NULL, 
	holder TEXT, 
	token BIGINT NOT NULL, 
	expires_at DATETIME, 
	CONSTRAINT pk_leases PRIMARY KEY (cache_id), 
	CONSTRAINT fk_leases_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "leases" VALUES('8ac12b3da3154d41bc035e1ba2429d26',NULL,2,NULL);
INSERT INTO "leases" VALUES('628793b395554d3c8cc9032b3bceee0b',NULL,2,NULL);
INSERT INTO "leases" VALUES('7a008580406e4b69bf4e951d43ef000f',NULL,0,NULL);
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
INSERT INTO "record_preserving_joins" VALUES('f8fc741967724e40b8794fc4ae3fd564','sales_shops','sales_shops','CREATE RECORD PRESERVING JOIN sales_shops AS
  sales INNER JOIN shops ON sales.shop = shops.shop
  PRESERVES sales','{"name": "world.sales", "location": "file:@ROOT@/tables/sales", "table_id": "391b2863-97a0-4e29-8dab-d7cbc10aa143"}','{"name": "world.shops", "location": "file:@ROOT@/tables/shops", "table_id": "8727f205-1da3-498a-ab0b-77dd8d50d18c"}','[["shop", "shop"]]',1,'VALID',NULL,'{"file:@ROOT@/tables/sales": ["391b2863-97a0-4e29-8dab-d7cbc10aa143", 2], "file:@ROOT@/tables/shops": ["8727f205-1da3-498a-ab0b-77dd8d50d18c", 1]}','2026-11-28 19:45:30.539258','2026-11-28 19:45:12.645198');
CREATE TABLE refresh_runs (
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
	CONSTRAINT pk_refresh_runs PRIMARY KEY (id), 
	CONSTRAINT fk_refresh_runs_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "refresh_runs" VALUES('95bcb611b1cb4ec8b35ca7f2ff125090','8ac12b3da3154d41bc035e1ba2429d26','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:45:13.433494','2026-11-28 19:45:18.752714',2,1291,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "0a76f6e5b848c35cbe923c21ef2873ea17910a20489030b0bc4504ee60a065c2", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1291, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}');
INSERT INTO "refresh_runs" VALUES('f6f2de9ac63044948594d2390b95c12f','628793b395554d3c8cc9032b3bceee0b','PUBLISHED','FULL','full is the only way this version has; the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 19:45:18.838064','2026-11-28 19:45:24.916615',10,7224,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "630236dc2274a3e6c64d10109d044464d0b49a0105bb5576cc1948acf5821efe", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 4, 1927], [1, [0], 2, 1796], [2, [1], 3, 1819], [3, [], 1, 1682]], "rows": 10, "bytes": 7224, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}');
INSERT INTO "refresh_runs" VALUES('92ba7c4bd62f4fb3b8a4d2a5cac90748','8ac12b3da3154d41bc035e1ba2429d26','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:45:25.369041','2026-11-28 19:45:30.287960',2,1246,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "0a76f6e5b848c35cbe923c21ef2873ea17910a20489030b0bc4504ee60a065c2", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509}, "exact_sums": ["shop"], "non_null": [], "joins_declared": [], "joins": [], "joins_broken": {}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1246, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}');
INSERT INTO "refresh_runs" VALUES('d33f202158c045979ea8429003a710a4','628793b395554d3c8cc9032b3bceee0b','PUBLISHED','FULL','full is the only way this version has; world.sales moved from version 1 to 2','host:1',2,2,1,2,'2026-11-28 19:45:30.379204','2026-11-28 19:45:36.040330',12,7169,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "630236dc2274a3e6c64d10109d044464d0b49a0105bb5576cc1948acf5821efe", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 5, 1907], [1, [0], 2, 1751], [2, [1], 4, 1829], [3, [], 1, 1682]], "rows": 12, "bytes": 7169, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}');
CREATE TABLE registry_revision (
	id INTEGER NOT NULL, 
	revision BIGINT NOT NULL, 
	CONSTRAINT pk_registry_revision PRIMARY KEY (id)
);
INSERT INTO "registry_revision" VALUES(1,11);
CREATE TABLE rewrite_decisions (
	id INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	session_id TEXT NOT NULL, 
	query_hash TEXT NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	caches JSON NOT NULL, 
	grouping_set TEXT, 
	reasons JSON NOT NULL, 
	millis FLOAT NOT NULL, 
	CONSTRAINT pk_rewrite_decisions PRIMARY KEY (id)
);
INSERT INTO "rewrite_decisions" VALUES(1,'2026-11-28 19:45:36.239717','42aebbeb-b174-4233-9bb1-f6baa3c0d5bf','5fa80620364ecb8b','HIT','["world.by_shop"]',NULL,'[]',1.49502199997186835389e+00);
INSERT INTO "rewrite_decisions" VALUES(2,'2026-11-28 19:45:36.770743','42aebbeb-b174-4233-9bb1-f6baa3c0d5bf','80e95dc324688744','HIT','["world.cube"]','(town)','[]',8.34169999961886787787e-01);
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
INSERT INTO "snapshot_tables" VALUES('95bcb611b1cb4ec8b35ca7f2ff125090',0,'world.sales','file:@ROOT@/tables/sales','391b2863-97a0-4e29-8dab-d7cbc10aa143',1,1795895102177);
INSERT INTO "snapshot_tables" VALUES('f6f2de9ac63044948594d2390b95c12f',0,'world.sales','file:@ROOT@/tables/sales','391b2863-97a0-4e29-8dab-d7cbc10aa143',1,1795895102177);
INSERT INTO "snapshot_tables" VALUES('f6f2de9ac63044948594d2390b95c12f',1,'world.shops','file:@ROOT@/tables/shops','8727f205-1da3-498a-ab0b-77dd8d50d18c',1,1795895103133);
INSERT INTO "snapshot_tables" VALUES('92ba7c4bd62f4fb3b8a4d2a5cac90748',0,'world.sales','file:@ROOT@/tables/sales','391b2863-97a0-4e29-8dab-d7cbc10aa143',2,1795895125209);
INSERT INTO "snapshot_tables" VALUES('d33f202158c045979ea8429003a710a4',0,'world.sales','file:@ROOT@/tables/sales','391b2863-97a0-4e29-8dab-d7cbc10aa143',2,1795895125209);
INSERT INTO "snapshot_tables" VALUES('d33f202158c045979ea8429003a710a4',1,'world.shops','file:@ROOT@/tables/shops','8727f205-1da3-498a-ab0b-77dd8d50d18c',1,1795895103133);
CREATE INDEX ix_caches_revision ON caches (revision);
CREATE UNIQUE INDEX uq_caches_live_name ON caches (namespace_key, name_key) WHERE dropped_at IS NULL;
CREATE INDEX ix_rewrite_decisions_at ON rewrite_decisions (at);
CREATE INDEX ix_refresh_runs_cache_id_started_at ON refresh_runs (cache_id, started_at);
COMMIT;