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
INSERT INTO "base_tables" VALUES('file:@ROOT@/tables/sales','world.sales','64876ad1-b96c-4ffa-8d18-acb646eca71a',2,1795896245137,'{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}},{"name":"shop","type":"integer","nullable":false,"metadata":{}},{"name":"day","type":"date","nullable":true,"metadata":{}},{"name":"amount","type":"decimal(10,2)","nullable":true,"metadata":{}}]}');
INSERT INTO "base_tables" VALUES('file:@ROOT@/tables/shops','world.shops','62544318-cbf3-4ecd-be89-26c13b7af945',1,1795896212317,'{"type":"struct","fields":[{"name":"shop","type":"integer","nullable":false,"metadata":{}},{"name":"town","type":"string","nullable":true,"metadata":{}}]}');
CREATE TABLE cachemgr_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT cachemgr_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "cachemgr_schema_version" VALUES('0012');
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
	revision BIGINT NOT NULL, depends_on JSON, damaged TEXT, 
	CONSTRAINT pk_caches PRIMARY KEY (id)
);
INSERT INTO "caches" VALUES('ffea17b3852a4214b92156a9e62ad207','world','by_shop','world','by_shop',NULL,'SELECT shop, SUM(amount) AS s, COUNT(*) AS n FROM sales GROUP BY shop','b9167ce57e4ff933f7df850e766862dcc807b181a597822fd6b2d96989e3736c','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["shop", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["shop", "int", false], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/ffea17b3852a4214b92156a9e62ad207','{}','{"kind": "ON_DEMAND"}','AUTO','STRICT',NULL,1,0,1,'@USER@','2026-11-28 20:03:48.072111','2026-11-28 20:03:48.072111',NULL,1,'e37cc2c39b1b456ebbcbac6e011ae552',12,'[]',NULL);
INSERT INTO "caches" VALUES('a4618fb74fe0443fb1a91aeefa9dacec','world','cube','world','cube','all','SELECT town, day, SUM(amount) AS s, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY CUBE (town, day)','4a33bfad872f06aeac6289b7781848c33675e0bd3ab07e478dcef42195ffe0fd','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], null, null], [1, [0], null, null], [2, [1], null, null], [3, [], null, null]], "rows": null, "bytes": null, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["town", "string", true], ["day", "date", true], ["s", "decimal(20,2)", true], ["n", "bigint", false]]','[]','[]','@ROOT@/caches/a4618fb74fe0443fb1a91aeefa9dacec','{}','{"kind": "ON_DEMAND"}','AUTO','MAX_STALENESS',3600,1,0,0,'@USER@','2026-11-28 20:03:48.375318','2026-11-28 20:03:48.375318',NULL,1,'1a08f975ec9343a8b69011c010389eb3',10,'[]',NULL);
INSERT INTO "caches" VALUES('029f94e703674683b2458aabd75a91ac','world','never','world','never',NULL,'SELECT MAX(id) AS m FROM sales','0def8a1f51ac5a968ae4bf4dfe0b0074f7af763d16e63f1fa4a0fd5f0a275fa6','{"catalog": "spark_catalog", "schema": "world", "location": null}','{"spark.sql.session.timeZone": "UTC"}','{"version": "2", "name": "world.never", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [], "measures": [["m", ["a", "max", [["c", 0, "id", "bigint", 0]], "bigint", 1, 0, null, []], 0], ["__rows", ["a", "count", [], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": null, "bytes": null, "visible": ["m"], "exact_sums": [], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','2','[["m", "bigint", true]]','[]','[]','@ROOT@/caches/029f94e703674683b2458aabd75a91ac','{}','{"kind": "EVERY", "seconds": 3600}','FULL','STRICT',NULL,1,0,0,'@USER@','2026-11-28 20:03:48.630256','2026-11-28 20:03:48.630256',NULL,1,NULL,5,'[]',NULL);
CREATE TABLE commit_numbers (
	cache_id VARCHAR(32) NOT NULL, 
	last BIGINT NOT NULL, 
	CONSTRAINT pk_commit_numbers PRIMARY KEY (cache_id), 
	CONSTRAINT fk_commit_numbers_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "commit_numbers" VALUES('ffea17b3852a4214b92156a9e62ad207',2);
INSERT INTO "commit_numbers" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',2);
INSERT INTO "commit_numbers" VALUES('029f94e703674683b2458aabd75a91ac',0);
CREATE TABLE grants (
	cache_id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	CONSTRAINT pk_grants PRIMARY KEY (cache_id, principal), 
	CONSTRAINT fk_grants_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "grants" VALUES('ffea17b3852a4214b92156a9e62ad207','ann');
INSERT INTO "grants" VALUES('ffea17b3852a4214b92156a9e62ad207','@USER@');
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
INSERT INTO "grouping_sets" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',0,0,'["town", "day"]',5,1906);
INSERT INTO "grouping_sets" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',1,1,'["town"]',2,1751);
INSERT INTO "grouping_sets" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',2,2,'["day"]',4,1829);
INSERT INTO "grouping_sets" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',3,3,'[]',1,1682);
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
INSERT INTO "leases" VALUES('ffea17b3852a4214b92156a9e62ad207',NULL,2,NULL);
INSERT INTO "leases" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',NULL,2,NULL);
INSERT INTO "leases" VALUES('029f94e703674683b2458aabd75a91ac',NULL,0,NULL);
CREATE TABLE past_grants (
	cache_id VARCHAR(32) NOT NULL, 
	principal TEXT NOT NULL, 
	until DATETIME NOT NULL, 
	CONSTRAINT pk_past_grants PRIMARY KEY (cache_id, principal), 
	CONSTRAINT fk_past_grants_cache_id FOREIGN KEY(cache_id) REFERENCES caches (id) ON DELETE CASCADE
);
INSERT INTO "past_grants" VALUES('ffea17b3852a4214b92156a9e62ad207','','2026-11-28 20:04:19.340911');
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
	created_at DATETIME NOT NULL, finds_each BOOLEAN DEFAULT 1 NOT NULL, 
	CONSTRAINT pk_record_preserving_joins PRIMARY KEY (id), 
	CONSTRAINT uq_record_preserving_joins_name_key UNIQUE (name_key)
);
INSERT INTO "record_preserving_joins" VALUES('8605f3bb46a4416d828f151dc9e9cfae','sales_shops','sales_shops','CREATE RECORD PRESERVING JOIN sales_shops AS
  sales INNER JOIN shops ON sales.shop = shops.shop
  PRESERVES sales','{"name": "world.sales", "location": "file:@ROOT@/tables/sales", "table_id": "64876ad1-b96c-4ffa-8d18-acb646eca71a"}','{"name": "world.shops", "location": "file:@ROOT@/tables/shops", "table_id": "62544318-cbf3-4ecd-be89-26c13b7af945"}','[["shop", "shop"]]',1,'VALID',NULL,'{"file:@ROOT@/tables/sales": ["64876ad1-b96c-4ffa-8d18-acb646eca71a", 2, "txn:9e67731b-ba0d-4d34-a007-bb051a29047b", 1795896245137], "file:@ROOT@/tables/shops": ["62544318-cbf3-4ecd-be89-26c13b7af945", 1, "txn:ea904e5b-9607-4db6-bae4-f1fd75f89c75", 1795896212317]}','2026-11-28 20:04:13.004320','2026-11-28 20:03:47.707090',1);
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
INSERT INTO "refresh_runs" VALUES('b94d05ab19914cbe9e262f800d33a4ef','ffea17b3852a4214b92156a9e62ad207','PUBLISHED','FULL','NEVER_REFRESHED: the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 20:03:48.719206','2026-11-28 20:03:55.057238',2,1291,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "cc40b7d8176df22822ccec1ef1309071cb0d129e4a4e3024a8fede5f4c251dae", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298}, "exact_sums": ["shop"], "non_null": [], "totals": {"n": 4, "__count_0": 3}, "bounds": [], "groups": {}, "joins_declared": [], "joins": [], "joins_broken": {}, "account": {"way": "FULL", "code": "NEVER_REFRESHED", "detail": "the cache was never refreshed", "changed_rows": 0, "changed_bytes": 0, "rows_written": 2, "bytes_written": 1291}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1291, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('9e75f3b4578d44cd8e911e6722a23f1d','a4618fb74fe0443fb1a91aeefa9dacec','PUBLISHED','FULL','NEVER_REFRESHED: the cache was never refreshed','host:1',1,1,0,1,'2026-11-28 20:03:55.444911','2026-11-28 20:04:04.418271',10,7224,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 1, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "PrepareTable", "detail": "create the Delta table"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "b7536bef07cea1496a7ca589bd44954efc894a1819f8a501c7997e1096538ab6", "base_rows": 4, "base_bytes": {"file:@ROOT@/tables/sales": 1298, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "totals": {"n": 4, "__count_0": 3}, "bounds": [], "groups": {}, "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "account": {"way": "FULL", "code": "NEVER_REFRESHED", "detail": "the cache was never refreshed", "changed_rows": 0, "changed_bytes": 0, "rows_written": 10, "bytes_written": 7224}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 4, 1927], [1, [0], 2, 1796], [2, [1], 3, 1819], [3, [], 1, 1682]], "rows": 10, "bytes": 7224, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('e37cc2c39b1b456ebbcbac6e011ae552','ffea17b3852a4214b92156a9e62ad207','PUBLISHED','FULL','FULL_IS_CHEAPER: by the bytes to read, the change alone costs 100% of a full refresh, and is taken up to 80%; world.sales moved from version 1 to 2: 1 commit appended 1 row in 1 file (REFRESH … INCREMENTAL takes the other way)','host:1',2,2,1,2,'2026-11-28 20:04:05.391905','2026-11-28 20:04:12.228744',2,1246,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2"}, {"stage": "WriteFull", "detail": "compute all rows, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}]','{"spec": "cc40b7d8176df22822ccec1ef1309071cb0d129e4a4e3024a8fede5f4c251dae", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509}, "exact_sums": ["shop"], "non_null": [], "totals": {"n": 5, "__count_0": 4}, "bounds": [], "groups": {}, "joins_declared": [], "joins": [], "joins_broken": {}, "account": {"way": "FULL", "code": "FULL_IS_CHEAPER", "detail": "by the bytes to read, the change alone costs 100% of a full refresh, and is taken up to 80%; world.sales moved from version 1 to 2: 1 commit appended 1 row in 1 file", "cure": "REFRESH \u2026 INCREMENTAL takes the other way", "change_estimate": 7666, "full_estimate": 7673, "changed_rows": 1, "changed_bytes": 1211, "rows_written": 2, "bytes_written": 1246, "full_seconds": 6.93}}','{"version": "2", "name": "world.by_shop", "relations": [["file:@ROOT@/tables/sales", "world.sales"]], "predicates": [], "keys": [["shop", ["c", 0, "shop", "int", 0], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [], "rows": 2, "bytes": 1246, "visible": ["shop", "s", "n"], "exact_sums": ["shop"], "non_null": [], "joins": [], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
INSERT INTO "refresh_runs" VALUES('1a08f975ec9343a8b69011c010389eb3','a4618fb74fe0443fb1a91aeefa9dacec','PUBLISHED','FULL','FULL_IS_CHEAPER: by the bytes to read, the change alone costs 118% of a full refresh, and is taken up to 80%; world.sales moved from version 1 to 2: 1 commit appended 1 row in 1 file (REFRESH … INCREMENTAL takes the other way)','host:1',2,2,1,2,'2026-11-28 20:04:12.407024','2026-11-28 20:04:19.079819',12,7168,NULL,'[{"stage": "PinVersions", "detail": "world.sales at version 2, world.shops at version 1"}, {"stage": "ValidateJoins", "detail": "sales_shops"}, {"stage": "WriteFull", "detail": "compute 4 grouping sets, one commit"}, {"stage": "Measure", "detail": "rows and bytes of each set, exact sums, columns that are never NULL"}, {"stage": "Publish", "detail": "compare the log and the lease, then publish"}, {"stage": "Sets", "detail": "few rows: one base pass; (town, day): base pass; (town): base pass; (day): base pass; (): base pass"}]','{"spec": "b7536bef07cea1496a7ca589bd44954efc894a1819f8a501c7997e1096538ab6", "base_rows": 5, "base_bytes": {"file:@ROOT@/tables/sales": 2509, "file:@ROOT@/tables/shops": 702}, "exact_sums": [], "non_null": [], "totals": {"n": 5, "__count_0": 4}, "bounds": [], "groups": {}, "joins_declared": ["sales_shops: file:@ROOT@/tables/sales file:@ROOT@/tables/shops [[''shop'', ''shop'']] checked"], "joins": ["sales_shops"], "joins_broken": {}, "account": {"way": "FULL", "code": "FULL_IS_CHEAPER", "detail": "by the bytes to read, the change alone costs 118% of a full refresh, and is taken up to 80%; world.sales moved from version 1 to 2: 1 commit appended 1 row in 1 file", "cure": "REFRESH \u2026 INCREMENTAL takes the other way", "change_estimate": 38033, "full_estimate": 32107, "changed_rows": 1, "changed_bytes": 1211, "rows_written": 12, "bytes_written": 7168, "full_seconds": 9.15}, "sets": [{"grouping_id": 0, "source": "base pass", "estimated_rows": null}, {"grouping_id": 1, "source": "base pass", "estimated_rows": null}, {"grouping_id": 2, "source": "base pass", "estimated_rows": null}, {"grouping_id": 3, "source": "base pass", "estimated_rows": null}]}','{"version": "2", "name": "world.cube", "relations": [["file:@ROOT@/tables/sales", "world.sales"], ["file:@ROOT@/tables/shops", "world.shops"]], "predicates": [["f", "eq", [["c", 0, "shop", "int", 0], ["c", 1, "shop", "int", 0]], "boolean", 0, []]], "keys": [["town", ["c", 1, "town", "string", 1], 0], ["day", ["c", 0, "day", "date", 1], 0]], "measures": [["s", ["a", "sum", [["c", 0, "amount", "decimal(10,2)", 1]], "decimal(20,2)", 1, 0, null, []], 0], ["n", ["a", "count", [], "bigint", 0, 0, null, []], 0], ["__count_0", ["a", "count", [["c", 0, "amount", "decimal(10,2)", 1]], "bigint", 0, 0, null, []], 1]], "columns": [], "sets": [[0, [0, 1], 5, 1906], [1, [0], 2, 1751], [2, [1], 4, 1829], [3, [], 1, 1682]], "rows": 12, "bytes": 7168, "visible": ["town", "day", "s", "n"], "exact_sums": [], "non_null": [], "joins": [["sales_shops", "file:@ROOT@/tables/sales", "file:@ROOT@/tables/shops", [["shop", "shop"]], 1]], "outer": [], "order_by": [], "limit": null}','STATEMENT',NULL,NULL,0);
CREATE TABLE registry_revision (
	id INTEGER NOT NULL, 
	revision BIGINT NOT NULL, epoch VARCHAR(32) DEFAULT '' NOT NULL, 
	CONSTRAINT pk_registry_revision PRIMARY KEY (id)
);
INSERT INTO "registry_revision" VALUES(1,14,'ade9adeaf8244ecf8e4398c813e792bc');
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
INSERT INTO "rewrite_decisions" VALUES(1,'2026-11-28 20:04:20.193929','628c4e4a-e4a1-41f9-9a94-f50deb1fd4a4','dbcc51a549a3b724','HIT','["world.by_shop"]',NULL,'[]',1.53206830000272020697e+01,NULL,'12422098ec0f43ea952315c5493f2c48',0);
INSERT INTO "rewrite_decisions" VALUES(2,'2026-11-28 20:04:26.027869','628c4e4a-e4a1-41f9-9a94-f50deb1fd4a4','d0cac9c72f73fb6a','HIT','["world.cube"]','(town)','[]',1.08773430999917763983e+02,NULL,'d247fa64778b428c93881bdd6b2e4fbe',0);
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
INSERT INTO "schedules" VALUES('ffea17b3852a4214b92156a9e62ad207',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('a4618fb74fe0443fb1a91aeefa9dacec',0,0,NULL,NULL,NULL);
INSERT INTO "schedules" VALUES('029f94e703674683b2458aabd75a91ac',0,0,NULL,NULL,NULL);
CREATE TABLE snapshot_tables (
	refresh_id VARCHAR(32) NOT NULL, 
	ordinal INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	location TEXT NOT NULL, 
	table_id TEXT, 
	version BIGINT, 
	commit_timestamp_ms BIGINT, commit_id TEXT, columns TEXT, 
	CONSTRAINT pk_snapshot_tables PRIMARY KEY (refresh_id, ordinal), 
	CONSTRAINT fk_snapshot_tables_refresh_id FOREIGN KEY(refresh_id) REFERENCES refresh_runs (id) ON DELETE CASCADE
);
INSERT INTO "snapshot_tables" VALUES('b94d05ab19914cbe9e262f800d33a4ef',0,'world.sales','file:@ROOT@/tables/sales','64876ad1-b96c-4ffa-8d18-acb646eca71a',1,1795896210489,'txn:449dc3cf-53dc-48ad-81d0-95847baa1b07','{"amount":["decimal(10,2)",true,"amount",null,null],"shop":["integer",false,"shop",null,null]}');
INSERT INTO "snapshot_tables" VALUES('9e75f3b4578d44cd8e911e6722a23f1d',0,'world.sales','file:@ROOT@/tables/sales','64876ad1-b96c-4ffa-8d18-acb646eca71a',1,1795896210489,'txn:449dc3cf-53dc-48ad-81d0-95847baa1b07','{"amount":["decimal(10,2)",true,"amount",null,null],"day":["date",true,"day",null,null],"shop":["integer",false,"shop",null,null]}');
INSERT INTO "snapshot_tables" VALUES('9e75f3b4578d44cd8e911e6722a23f1d',1,'world.shops','file:@ROOT@/tables/shops','62544318-cbf3-4ecd-be89-26c13b7af945',1,1795896212317,'txn:ea904e5b-9607-4db6-bae4-f1fd75f89c75','{"shop":["integer",false,"shop",null,null],"town":["string",true,"town",null,null]}');
INSERT INTO "snapshot_tables" VALUES('e37cc2c39b1b456ebbcbac6e011ae552',0,'world.sales','file:@ROOT@/tables/sales','64876ad1-b96c-4ffa-8d18-acb646eca71a',2,1795896245137,'txn:9e67731b-ba0d-4d34-a007-bb051a29047b','{"amount":["decimal(10,2)",true,"amount",null,null],"shop":["integer",false,"shop",null,null]}');
INSERT INTO "snapshot_tables" VALUES('1a08f975ec9343a8b69011c010389eb3',0,'world.sales','file:@ROOT@/tables/sales','64876ad1-b96c-4ffa-8d18-acb646eca71a',2,1795896245137,'txn:9e67731b-ba0d-4d34-a007-bb051a29047b','{"amount":["decimal(10,2)",true,"amount",null,null],"day":["date",true,"day",null,null],"shop":["integer",false,"shop",null,null]}');
INSERT INTO "snapshot_tables" VALUES('1a08f975ec9343a8b69011c010389eb3',1,'world.shops','file:@ROOT@/tables/shops','62544318-cbf3-4ecd-be89-26c13b7af945',1,1795896212317,'txn:ea904e5b-9607-4db6-bae4-f1fd75f89c75','{"shop":["integer",false,"shop",null,null],"town":["string",true,"town",null,null]}');
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