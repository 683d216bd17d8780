-- The caches that serve TPC-H: at most 15. Joins follow the declared foreign keys, so a query that
-- reads fewer of the tables is served too.
CREATE RELATIONAL CACHE h_lines_by_day AS
SELECT l_shipdate, l_returnflag, l_linestatus,
  SUM(l_quantity) AS qty, SUM(l_extendedprice) AS price,
  SUM(l_extendedprice * (1 - l_discount)) AS disc_price,
  SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge,
  SUM(l_discount) AS discounts, COUNT(*) AS line_count
FROM lineitem
GROUP BY l_shipdate, l_returnflag, l_linestatus;

CREATE RELATIONAL CACHE h_discounts_by_day AS
SELECT l_shipdate, l_discount, l_quantity, SUM(l_extendedprice * l_discount) AS saved
FROM lineitem
GROUP BY l_shipdate, l_discount, l_quantity;

CREATE RELATIONAL CACHE h_orders AS
SELECT l_orderkey, o_custkey, o_orderdate, o_shippriority, c_mktsegment, l_shipdate, l_returnflag,
  c_name, c_acctbal, c_phone, c_address, c_comment, n_name, o_totalprice,
  SUM(l_extendedprice * (1 - l_discount)) AS revenue, SUM(l_quantity) AS qty
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
  JOIN customer ON o_custkey = c_custkey
  JOIN nation ON c_nationkey = n_nationkey
GROUP BY l_orderkey, o_custkey, o_orderdate, o_shippriority, c_mktsegment, l_shipdate,
  l_returnflag, c_name, c_acctbal, c_phone, c_address, c_comment, n_name, o_totalprice;

CREATE RELATIONAL CACHE h_nations AS
SELECT s_nationkey, c_nationkey, sn.n_name AS supplier_nation, sr.r_name AS supplier_region,
  cn.n_name AS customer_nation, cr.r_name AS customer_region, l_shipdate, o_orderdate, p_type,
  SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
  JOIN customer ON o_custkey = c_custkey
  JOIN nation cn ON c_nationkey = cn.n_nationkey
  JOIN region cr ON cn.n_regionkey = cr.r_regionkey
  JOIN supplier ON l_suppkey = s_suppkey
  JOIN nation sn ON s_nationkey = sn.n_nationkey
  JOIN region sr ON sn.n_regionkey = sr.r_regionkey
  JOIN part ON l_partkey = p_partkey
GROUP BY s_nationkey, c_nationkey, sn.n_name, sr.r_name, cn.n_name, cr.r_name, l_shipdate,
  o_orderdate, p_type;

CREATE RELATIONAL CACHE h_profit AS
SELECT n_name, o_orderdate, p_name,
  SUM(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
  JOIN part ON l_partkey = p_partkey
  JOIN supplier ON l_suppkey = s_suppkey
  JOIN nation ON s_nationkey = n_nationkey
  JOIN orders ON l_orderkey = o_orderkey
GROUP BY n_name, o_orderdate, p_name;

CREATE RELATIONAL CACHE h_stock AS
SELECT ps_partkey, n_name, r_name, SUM(ps_supplycost * ps_availqty) AS worth,
  MIN(ps_supplycost) AS least
FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey
  JOIN nation ON s_nationkey = n_nationkey
  JOIN region ON n_regionkey = r_regionkey
GROUP BY ps_partkey, n_name, r_name;

CREATE RELATIONAL CACHE h_ship_modes AS
SELECT l_shipmode, o_orderpriority, l_shipdate, l_commitdate, l_receiptdate, COUNT(*) AS line_count
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
GROUP BY l_shipmode, o_orderpriority, l_shipdate, l_commitdate, l_receiptdate;

CREATE RELATIONAL CACHE h_parts AS
SELECT p_type, p_brand, p_container, p_size, l_shipdate, l_quantity, l_shipmode, l_shipinstruct,
  SUM(l_extendedprice * (1 - l_discount)) AS revenue, SUM(l_extendedprice) AS price
FROM lineitem JOIN part ON l_partkey = p_partkey
GROUP BY p_type, p_brand, p_container, p_size, l_shipdate, l_quantity, l_shipmode, l_shipinstruct;

CREATE RELATIONAL CACHE h_supplied AS
SELECT l_suppkey, l_partkey, l_shipdate, SUM(l_extendedprice * (1 - l_discount)) AS revenue,
  SUM(l_quantity) AS qty, AVG(l_quantity) AS average
FROM lineitem
GROUP BY l_suppkey, l_partkey, l_shipdate;

CREATE RELATIONAL CACHE h_complaints AS
SELECT s_suppkey, s_name FROM supplier WHERE s_comment LIKE '%Customer%Complaints%';

CREATE RELATIONAL CACHE h_balances AS
SELECT SUBSTRING(c_phone, 1, 2) AS code, AVG(c_acctbal) AS average, COUNT(*) AS customers
FROM customer
WHERE c_acctbal > 0.00
GROUP BY SUBSTRING(c_phone, 1, 2);

CREATE RELATIONAL CACHE h_late_lines AS
SELECT l_orderkey, l_suppkey, l_commitdate, l_receiptdate
FROM lineitem
WHERE l_commitdate < l_receiptdate;

CREATE RELATIONAL CACHE h_usual_orders AS
SELECT o_orderkey, o_custkey FROM orders WHERE o_comment NOT LIKE '%special%requests%';
