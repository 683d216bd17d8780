-- The tables that the shop's backend, its payment provider and the ad networks load.
CREATE SCHEMA shop;

CREATE TABLE shop.countries (
  code STRING NOT NULL, name STRING NOT NULL, region STRING NOT NULL, currency STRING NOT NULL,
  PRIMARY KEY (code) RELY
);
CREATE TABLE shop.customers (
  id BIGINT NOT NULL, first_name STRING, last_name STRING, email STRING NOT NULL,
  country_code STRING NOT NULL, signup_channel STRING, marketing_opt_in BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL, deleted_at TIMESTAMP,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (country_code) REFERENCES shop.countries (code) RELY
);
CREATE TABLE shop.categories (
  id BIGINT NOT NULL, name STRING NOT NULL, department STRING NOT NULL,
  PRIMARY KEY (id) RELY
);
CREATE TABLE shop.suppliers (
  id BIGINT NOT NULL, name STRING NOT NULL, country_code STRING NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (country_code) REFERENCES shop.countries (code) RELY
);
CREATE TABLE shop.products (
  id BIGINT NOT NULL, sku STRING NOT NULL, name STRING NOT NULL, category_id BIGINT NOT NULL,
  supplier_id BIGINT, list_price DECIMAL(10,2) NOT NULL, unit_cost DECIMAL(10,2),
  is_active BOOLEAN NOT NULL, created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (category_id) REFERENCES shop.categories (id) RELY,
  FOREIGN KEY (supplier_id) REFERENCES shop.suppliers (id) RELY
);
CREATE TABLE shop.coupons (
  code STRING NOT NULL, kind STRING NOT NULL, percent_off INT, starts_on DATE NOT NULL,
  ends_on DATE,
  PRIMARY KEY (code) RELY
);
CREATE TABLE shop.orders (
  id BIGINT NOT NULL, customer_id BIGINT NOT NULL, status STRING NOT NULL,
  sales_channel STRING NOT NULL, coupon_code STRING, shipping_fee DECIMAL(10,2) NOT NULL,
  is_gift BOOLEAN, ordered_at TIMESTAMP NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (customer_id) REFERENCES shop.customers (id) RELY,
  FOREIGN KEY (coupon_code) REFERENCES shop.coupons (code) RELY
);
CREATE TABLE shop.order_items (
  order_id BIGINT NOT NULL, line_no INT NOT NULL, product_id BIGINT NOT NULL,
  quantity INT NOT NULL, unit_price DECIMAL(10,2) NOT NULL, discount_amount DECIMAL(10,2),
  PRIMARY KEY (order_id, line_no) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY,
  FOREIGN KEY (product_id) REFERENCES shop.products (id) RELY
);
CREATE TABLE shop.payments (
  id BIGINT NOT NULL, order_id BIGINT NOT NULL, method STRING NOT NULL, status STRING NOT NULL,
  amount_cents BIGINT NOT NULL, paid_at TIMESTAMP,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY
);
CREATE TABLE shop.refunds (
  id BIGINT NOT NULL, order_id BIGINT NOT NULL, reason STRING, amount DECIMAL(10,2) NOT NULL,
  refunded_at TIMESTAMP NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY
);
CREATE TABLE shop.shipments (
  id BIGINT NOT NULL, order_id BIGINT NOT NULL, carrier STRING NOT NULL, promised_date DATE NOT NULL,
  shipped_at TIMESTAMP, delivered_at TIMESTAMP,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY
);
CREATE TABLE shop.web_sessions (
  id STRING NOT NULL, customer_id BIGINT, channel STRING, device STRING NOT NULL,
  landing_page STRING, page_views INT NOT NULL, order_id BIGINT, started_at TIMESTAMP NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (customer_id) REFERENCES shop.customers (id) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY
);
CREATE TABLE shop.ad_spend (
  spend_date DATE NOT NULL, channel STRING NOT NULL, campaign STRING NOT NULL,
  impressions BIGINT NOT NULL, clicks BIGINT NOT NULL, cost DECIMAL(12,2) NOT NULL,
  PRIMARY KEY (spend_date, channel, campaign) RELY
);
CREATE TABLE shop.tickets (
  id BIGINT NOT NULL, customer_id BIGINT NOT NULL, order_id BIGINT, topic STRING,
  priority STRING NOT NULL, satisfaction INT, opened_at TIMESTAMP NOT NULL, closed_at TIMESTAMP,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (customer_id) REFERENCES shop.customers (id) RELY,
  FOREIGN KEY (order_id) REFERENCES shop.orders (id) RELY
);
CREATE TABLE shop.reviews (
  id BIGINT NOT NULL, product_id BIGINT NOT NULL, customer_id BIGINT NOT NULL, rating INT NOT NULL,
  body STRING, created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (id) RELY,
  FOREIGN KEY (product_id) REFERENCES shop.products (id) RELY,
  FOREIGN KEY (customer_id) REFERENCES shop.customers (id) RELY
);
