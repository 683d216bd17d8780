WITH year_total AS (
  SELECT c_customer_id AS customer_id, c_first_name AS first_name, c_last_name AS last_name,
    d_year AS dyear,
    SUM(((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt)
      + ss_ext_sales_price) / 2) AS year_total, 's' AS sale_type
  FROM customer, store_sales, date_dim
  WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, c_first_name, c_last_name, d_year
  UNION ALL
  SELECT c_customer_id AS customer_id, c_first_name AS first_name, c_last_name AS last_name,
    d_year AS dyear,
    SUM(((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt)
      + cs_ext_sales_price) / 2) AS year_total, 'c' AS sale_type
  FROM customer, catalog_sales, date_dim
  WHERE c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, c_first_name, c_last_name, d_year)
SELECT t_s_secyear.customer_id, t_s_secyear.first_name, t_s_secyear.last_name
FROM year_total t_s_firstyear, year_total t_s_secyear, year_total t_c_firstyear,
  year_total t_c_secyear
WHERE t_s_secyear.customer_id = t_s_firstyear.customer_id
  AND t_s_firstyear.customer_id = t_c_secyear.customer_id
  AND t_s_firstyear.customer_id = t_c_firstyear.customer_id
  AND t_s_firstyear.sale_type = 's' AND t_c_firstyear.sale_type = 'c'
  AND t_s_secyear.sale_type = 's' AND t_c_secyear.sale_type = 'c'
  AND t_s_firstyear.dyear = 2001 AND t_s_secyear.dyear = 2002
  AND t_c_firstyear.dyear = 2001 AND t_c_secyear.dyear = 2002
  AND t_s_firstyear.year_total > 0 AND t_c_firstyear.year_total > 0
  AND t_c_secyear.year_total / t_c_firstyear.year_total
    > t_s_secyear.year_total / t_s_firstyear.year_total
ORDER BY t_s_secyear.customer_id, t_s_secyear.first_name, t_s_secyear.last_name
LIMIT 100
