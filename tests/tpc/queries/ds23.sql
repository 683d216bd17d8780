WITH frequent_ss_items AS (
  SELECT itemdesc, i_item_sk AS item_sk, d_date AS solddate, COUNT(*) AS cnt
  FROM (
    SELECT SUBSTR(i_item_desc, 1, 30) AS itemdesc, i_item_sk, d_date
    FROM store_sales, date_dim, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
      AND d_year IN (2000, 2001, 2002, 2003)) sold
  GROUP BY itemdesc, i_item_sk, d_date
  HAVING COUNT(*) > 4),
customer_sales AS (
  SELECT c_customer_sk, SUM(ss_quantity * ss_sales_price) AS csales
  FROM store_sales, customer, date_dim
  WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk
    AND d_year IN (2000, 2001, 2002, 2003)
  GROUP BY c_customer_sk)
SELECT SUM(sales) AS sales
FROM (
  SELECT cs_quantity * cs_list_price AS sales
  FROM catalog_sales, date_dim
  WHERE d_year = 2000 AND d_moy = 2 AND cs_sold_date_sk = d_date_sk
    AND cs_item_sk IN (SELECT item_sk FROM frequent_ss_items)
    AND cs_bill_customer_sk IN (
      SELECT c_customer_sk FROM customer_sales
      WHERE csales > 0.5 * (SELECT MAX(csales) AS most FROM customer_sales))) x
LIMIT 100
