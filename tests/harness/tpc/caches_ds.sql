-- The caches that serve TPC-DS: at most 15. The facts' foreign keys may be NULL, so a join to a
-- dimension loses rows; the caches keep the facts' keys, and queries join the dimensions to them.
-- A line is returned once at most: the keys of both tables are the ticket, or order, and the item.
CREATE RECORD PRESERVING JOIN ds_store_lines_returned AS
store_sales LEFT JOIN store_returns
  ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk PRESERVES store_sales;

CREATE RECORD PRESERVING JOIN ds_catalog_lines_returned AS
catalog_sales LEFT JOIN catalog_returns
  ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk PRESERVES catalog_sales;

CREATE RELATIONAL CACHE ds_store_days AS
SELECT ss_sold_date_sk, ss_item_sk, ss_store_sk,
  SUM(ss_ext_sales_price) AS ext_sales_price, SUM(ss_sales_price) AS sales_price,
  SUM(ss_net_profit) AS net_profit, AVG(ss_net_profit) AS average_profit,
  SUM(ss_quantity * ss_list_price) AS listed,
  SUM(COALESCE(ss_sales_price * ss_quantity, 0)) AS sold, COUNT(*) AS sales
FROM store_sales
GROUP BY ss_sold_date_sk, ss_item_sk, ss_store_sk;

CREATE RELATIONAL CACHE ds_store_customers AS
SELECT ss_sold_date_sk, ss_customer_sk, ss_item_sk, ss_store_sk, ss_promo_sk,
  SUM(((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt)
    + ss_ext_sales_price) / 2) AS worth,
  SUM(ss_ext_list_price - ss_ext_discount_amt) AS discounted, SUM(ss_net_paid) AS net_paid,
  SUM(ss_quantity * ss_sales_price) AS paid, SUM(ss_ext_sales_price) AS ext_sales_price,
  COUNT(*) AS sales
FROM store_sales
GROUP BY ss_sold_date_sk, ss_customer_sk, ss_item_sk, ss_store_sk, ss_promo_sk;

CREATE RELATIONAL CACHE ds_store_tickets AS
SELECT ss_ticket_number, ss_customer_sk, ss_sold_date_sk, ss_sold_time_sk, ss_store_sk,
  ss_hdemo_sk, ss_addr_sk,
  SUM(ss_coupon_amt) AS coupon, SUM(ss_net_profit) AS net_profit,
  SUM(ss_ext_sales_price) AS ext_sales_price, SUM(ss_ext_list_price) AS ext_list_price,
  SUM(ss_ext_tax) AS ext_tax, COUNT(*) AS items
FROM store_sales
GROUP BY ss_ticket_number, ss_customer_sk, ss_sold_date_sk, ss_sold_time_sk, ss_store_sk,
  ss_hdemo_sk, ss_addr_sk;

CREATE RELATIONAL CACHE ds_store_places AS
SELECT ss_sold_date_sk, ss_addr_sk, ss_item_sk, ss_store_sk, ss_cdemo_sk, ss_hdemo_sk,
  ss_promo_sk, ss_sales_price, ss_net_profit, SUM(ss_ext_sales_price) AS ext_sales_price,
  AVG(ss_ext_sales_price) AS average_ext_sales_price, SUM(ss_ext_wholesale_cost) AS wholesale_cost,
  AVG(ss_ext_wholesale_cost) AS average_wholesale_cost,
  SUM(ss_quantity) AS quantity, AVG(ss_quantity) AS average_quantity,
  AVG(ss_list_price) AS list_price, AVG(ss_coupon_amt) AS coupon, AVG(ss_sales_price) AS price
FROM store_sales
GROUP BY ss_sold_date_sk, ss_addr_sk, ss_item_sk, ss_store_sk, ss_cdemo_sk, ss_hdemo_sk,
  ss_promo_sk, ss_sales_price, ss_net_profit;

CREATE RELATIONAL CACHE ds_store_prices AS
SELECT ss_quantity, ss_list_price, ss_coupon_amt, ss_wholesale_cost,
  AVG(ss_ext_discount_amt) AS discount, AVG(ss_net_paid) AS net_paid, COUNT(*) AS sales
FROM store_sales
GROUP BY ss_quantity, ss_list_price, ss_coupon_amt, ss_wholesale_cost;

CREATE RELATIONAL CACHE ds_catalog_days AS
SELECT cs_sold_date_sk, cs_item_sk, cs_call_center_sk, cs_bill_customer_sk, cs_bill_addr_sk,
  cs_bill_cdemo_sk, cs_promo_sk, cs_sales_price,
  SUM(cs_ext_sales_price) AS ext_sales_price, SUM(cs_net_profit) AS net_profit,
  SUM(cs_quantity * cs_list_price) AS listed,
  SUM(((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt)
    + cs_ext_sales_price) / 2) AS worth,
  AVG(cs_quantity) AS quantity, AVG(cs_list_price) AS list_price, AVG(cs_coupon_amt) AS coupon,
  AVG(cs_sales_price) AS price, AVG(cs_ext_discount_amt) AS discount, COUNT(*) AS sales
FROM catalog_sales
GROUP BY cs_sold_date_sk, cs_item_sk, cs_call_center_sk, cs_bill_customer_sk, cs_bill_addr_sk,
  cs_bill_cdemo_sk, cs_promo_sk, cs_sales_price;

CREATE RELATIONAL CACHE ds_catalog_shipping AS
SELECT cs_ship_date_sk, cs_sold_date_sk, cs_sold_time_sk, cs_warehouse_sk, cs_ship_mode_sk,
  cs_call_center_sk, SUM(cs_sales_price * cs_quantity) AS sold,
  SUM(cs_net_paid_inc_tax * cs_quantity) AS net_paid, COUNT(*) AS sales
FROM catalog_sales
GROUP BY cs_ship_date_sk, cs_sold_date_sk, cs_sold_time_sk, cs_warehouse_sk, cs_ship_mode_sk,
  cs_call_center_sk;

CREATE RELATIONAL CACHE ds_web_days AS
SELECT ws_sold_date_sk, ws_item_sk, ws_bill_customer_sk, ws_bill_addr_sk,
  SUM(ws_ext_sales_price) AS ext_sales_price, SUM(ws_sales_price) AS sales_price,
  SUM(ws_ext_list_price - ws_ext_discount_amt) AS discounted, SUM(ws_net_paid) AS net_paid,
  SUM(ws_quantity * ws_list_price) AS listed,
  AVG(ws_ext_discount_amt) AS discount, COUNT(*) AS sales
FROM web_sales
GROUP BY ws_sold_date_sk, ws_item_sk, ws_bill_customer_sk, ws_bill_addr_sk;

CREATE RELATIONAL CACHE ds_web_shipping AS
SELECT ws_ship_date_sk, ws_sold_date_sk, ws_sold_time_sk, ws_warehouse_sk, ws_ship_mode_sk,
  ws_web_site_sk, ws_web_page_sk, ws_ship_hdemo_sk,
  SUM(ws_ext_sales_price * ws_quantity) AS sold, SUM(ws_net_paid * ws_quantity) AS net_paid,
  COUNT(*) AS sales
FROM web_sales
GROUP BY ws_ship_date_sk, ws_sold_date_sk, ws_sold_time_sk, ws_warehouse_sk, ws_ship_mode_sk,
  ws_web_site_sk, ws_web_page_sk, ws_ship_hdemo_sk;

CREATE RELATIONAL CACHE ds_stock AS
SELECT inv_date_sk, inv_item_sk, inv_warehouse_sk, SUM(inv_quantity_on_hand) AS on_hand,
  AVG(inv_quantity_on_hand) AS average
FROM inventory
GROUP BY inv_date_sk, inv_item_sk, inv_warehouse_sk;

CREATE RELATIONAL CACHE ds_store_returns AS
SELECT sr_returned_date_sk, sr_customer_sk, sr_store_sk, sr_item_sk,
  SUM(sr_return_amt) AS return_amt, SUM(sr_net_loss) AS net_loss,
  SUM(sr_return_quantity) AS quantity
FROM store_returns
GROUP BY sr_returned_date_sk, sr_customer_sk, sr_store_sk, sr_item_sk;

CREATE RELATIONAL CACHE ds_catalog_returns AS
SELECT cr_returned_date_sk, cr_returning_customer_sk, cr_returning_addr_sk, cr_item_sk,
  cr_call_center_sk, SUM(cr_return_amt_inc_tax) AS return_amt, SUM(cr_net_loss) AS net_loss,
  SUM(cr_return_amount) AS amount,
  SUM(cr_return_quantity) AS quantity
FROM catalog_returns
GROUP BY cr_returned_date_sk, cr_returning_customer_sk, cr_returning_addr_sk, cr_item_sk,
  cr_call_center_sk;

CREATE RELATIONAL CACHE ds_web_returns AS
SELECT wr_returned_date_sk, wr_returning_customer_sk, wr_returning_addr_sk, wr_item_sk,
  wr_web_page_sk, SUM(wr_return_amt) AS return_amt, SUM(wr_net_loss) AS net_loss,
  SUM(wr_return_quantity) AS quantity
FROM web_returns
GROUP BY wr_returned_date_sk, wr_returning_customer_sk, wr_returning_addr_sk, wr_item_sk,
  wr_web_page_sk;

CREATE RELATIONAL CACHE ds_store_sold_and_returned AS
SELECT ss_ticket_number, ss_item_sk, ss_sold_date_sk, ss_sold_time_sk, ss_customer_sk,
  ss_store_sk, ss_cdemo_sk, ss_hdemo_sk, ss_addr_sk, ss_promo_sk, ss_quantity, ss_wholesale_cost, ss_list_price,
  ss_sales_price, ss_coupon_amt, ss_ext_sales_price, ss_net_paid, ss_net_profit,
  sr_ticket_number, sr_item_sk, sr_returned_date_sk, sr_customer_sk, sr_reason_sk,
  sr_return_quantity, sr_return_amt, sr_net_loss
FROM store_sales LEFT JOIN store_returns
  ON ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk;

CREATE RELATIONAL CACHE ds_catalog_sold_and_returned AS
SELECT cs_order_number, cs_item_sk, cs_sold_date_sk, cs_ship_date_sk, cs_bill_customer_sk,
  cs_bill_cdemo_sk, cs_bill_hdemo_sk, cs_warehouse_sk, cs_promo_sk, cs_catalog_page_sk,
  cs_quantity, cs_sales_price, cs_ext_list_price, cs_ext_sales_price, cs_net_paid, cs_net_profit,
  cr_order_number, cr_item_sk, cr_return_quantity, cr_return_amount, cr_refunded_cash,
  cr_reversed_charge, cr_store_credit, cr_net_loss
FROM catalog_sales LEFT JOIN catalog_returns
  ON cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk;
