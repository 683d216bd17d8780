-- The models that are kept as caches: each is a model's own SQL over the views of those below it.
-- Chosen by what dashboards read; `project.as_cache` writes one.

CREATE RELATIONAL CACHE cache_of_fct_orders AS
with orders as (

    select * from int_orders_enriched

),

customers as (

    select * from stg_customers

),

countries as (

    select * from stg_countries

),

final as (

    select
        orders.order_id,
        orders.customer_id,
        customers.country_code,
        countries.region,
        orders.order_date,
        cast(date_trunc('month', orders.order_date) as date) as order_month,
        orders.order_status,
        orders.sales_channel,
        orders.coupon_code,
        orders.is_gift,
        orders.line_count,
        orders.unit_count,
        orders.gross_amount,
        orders.discount_amount,
        orders.net_amount,
        orders.shipping_fee,
        orders.net_amount + orders.shipping_fee as order_total,
        orders.cost_of_goods,
        orders.net_amount - orders.cost_of_goods as gross_margin,
        orders.paid_amount,
        orders.refunded_amount,
        orders.has_refund

    from orders
    inner join customers on orders.customer_id = customers.customer_id
    inner join countries on customers.country_code = countries.country_code

)

select * from final;

CREATE RELATIONAL CACHE cache_of_fct_order_items AS
with items as (

    select * from int_order_items_enriched

),

customers as (

    select * from stg_customers

)

select
    items.*,
    customers.country_code,
    customers.signup_channel,
    items.net_amount - items.cost_of_goods as gross_margin

from items
inner join customers on items.customer_id = customers.customer_id
where items.order_status <> 'cancelled';

CREATE RELATIONAL CACHE cache_of_fct_daily_sales AS
with items as (

    select * from fct_order_items

)

select
    order_date,
    sales_channel,
    country_code,
    category_name,
    count(distinct order_id) as orders,
    sum(quantity) as units,
    sum(gross_amount) as gross_revenue,
    sum(discount_amount) as discounts,
    sum(net_amount) as net_revenue,
    sum(gross_margin) as gross_margin

from items
group by order_date, sales_channel, country_code, category_name;

CREATE RELATIONAL CACHE cache_of_fct_monthly_revenue AS
with orders as (

    select * from fct_orders

),

final as (

    select
        order_month,
        region,
        count(*) as orders,
        count(distinct customer_id) as customers,
        sum(net_amount) as net_revenue,
        sum(refunded_amount) as refunds,
        sum(net_amount) - sum(refunded_amount) as revenue_after_refunds,
        round(avg(order_total), 2) as average_order_value,
        sum(refunded_amount) / nullif(sum(net_amount), 0) as refund_rate

    from orders
    where order_status in ('completed', 'shipped', 'returned')
    group by order_month, region

)

select * from final;

CREATE RELATIONAL CACHE cache_of_fct_product_performance AS
with items as (

    select * from fct_order_items

),

product_sales as (

    select
        product_id,
        sum(quantity) as units_sold,
        sum(net_amount) as net_revenue,
        sum(gross_margin) as gross_margin,
        count(distinct order_id) as orders,
        max(order_date) as last_sold_on

    from items
    group by product_id

),

products as (

    select * from dim_products

)

select
    products.product_id,
    products.product_name,
    products.category_name,
    products.department,
    products.supplier_name,
    products.average_rating,
    coalesce(product_sales.units_sold, 0) as units_sold,
    coalesce(product_sales.net_revenue, 0) as net_revenue,
    coalesce(product_sales.gross_margin, 0) as gross_margin,
    product_sales.gross_margin / nullif(product_sales.net_revenue, 0) as margin_rate,
    product_sales.last_sold_on

from products
left join product_sales on products.product_id = product_sales.product_id;

CREATE RELATIONAL CACHE cache_of_dim_customers AS
with customers as (

    select * from stg_customers

),

countries as (

    select * from stg_countries

),

customer_orders as (

    select * from int_customer_orders

),

final as (

    select
        customers.customer_id,
        customers.full_name,
        customers.email,
        customers.country_code,
        countries.country_name,
        countries.region,
        customers.signup_channel,
        customers.signup_date,
        customers.marketing_opt_in,
        customer_orders.first_order_date,
        customer_orders.most_recent_order_date,
        coalesce(customer_orders.number_of_orders, 0) as number_of_orders,
        coalesce(customer_orders.lifetime_revenue, 0) as lifetime_revenue,
        case
            when customer_orders.lifetime_revenue >= 1000 then 'gold'
            when customer_orders.lifetime_revenue >= 300 then 'silver'
            when customer_orders.customer_id is not null then 'bronze'
            else 'prospect'
        end as customer_tier

    from customers
    inner join countries on customers.country_code = countries.country_code
    left join customer_orders on customers.customer_id = customer_orders.customer_id
    where not customers.is_deleted

)

select * from final;

CREATE RELATIONAL CACHE cache_of_int_sessions_daily AS
with sessions as (

    select * from stg_web_sessions

)

select
    session_date,
    channel,
    device,
    count(*) as sessions,
    count(distinct customer_id) as known_visitors,
    sum(page_views) as page_views,
    sum(is_bounce) as bounces,
    sum(is_converted) as conversions

from sessions
group by session_date, channel, device;

CREATE RELATIONAL CACHE cache_of_fct_channel_funnel AS
with daily as (

    select * from int_sessions_daily

)

select
    cast(date_trunc('month', session_date) as date) as session_month,
    channel,
    sum(sessions) as sessions,
    sum(page_views) as page_views,
    sum(bounces) as bounces,
    sum(conversions) as conversions,
    sum(bounces) / sum(sessions) as bounce_rate,
    sum(conversions) / nullif(sum(sessions), 0) as conversion_rate

from daily
group by 1, 2;

CREATE RELATIONAL CACHE cache_of_fct_marketing_daily AS
with sessions as (

    select
        session_date,
        channel,
        sum(sessions) as sessions,
        sum(conversions) as conversions
    from int_sessions_daily
    group by session_date, channel

),

ad_spend as (

    select * from int_ad_spend_daily

),

final as (

    select
        ad_spend.spend_date,
        ad_spend.channel,
        ad_spend.impressions,
        ad_spend.clicks,
        ad_spend.spend,
        coalesce(sessions.sessions, 0) as sessions,
        coalesce(sessions.conversions, 0) as conversions,
        ad_spend.spend / nullif(sessions.conversions, 0) as cost_per_conversion

    from ad_spend
    left join sessions
        on ad_spend.spend_date = sessions.session_date
        and ad_spend.channel = sessions.channel

)

select * from final;

CREATE RELATIONAL CACHE cache_of_int_shipment_delays AS
with shipments as (

    select * from stg_shipments

),

orders as (

    select * from stg_orders

)

select
    shipments.shipment_id,
    shipments.order_id,
    shipments.carrier,
    orders.order_date,
    shipments.shipped_date,
    shipments.delivered_date,
    shipments.shipment_status,
    datediff(shipments.shipped_date, orders.order_date) as days_to_ship,
    datediff(shipments.delivered_date, shipments.shipped_date) as days_in_transit,
    case
        when shipments.delivered_date is null then null
        when shipments.delivered_date > shipments.promised_date then 1
        else 0
    end as is_late

from shipments
inner join orders on shipments.order_id = orders.order_id;

CREATE RELATIONAL CACHE cache_of_fct_refunds AS
with refunds as (

    select * from stg_refunds

),

orders as (

    select * from stg_orders

),

final as (

    select
        cast(date_trunc('month', refunds.refund_date) as date) as refund_month,
        refunds.refund_reason,
        orders.sales_channel,
        count(*) as refunds,
        count(distinct refunds.order_id) as refunded_orders,
        sum(refunds.refund_amount) as refund_amount

    from refunds
    inner join orders on refunds.order_id = orders.order_id
    group by 1, 2, 3

)

select * from final;

CREATE RELATIONAL CACHE cache_of_fct_payment_mix AS
with payments as (

    select * from stg_payments

),

orders as (

    select * from stg_orders

)

select
    orders.order_date,
    payments.payment_method,
    payments.payment_status,
    count(*) as payments,
    sum(payments.amount) as amount

from payments
inner join orders on payments.order_id = orders.order_id
group by orders.order_date, payments.payment_method, payments.payment_status;

CREATE RELATIONAL CACHE cache_of_fct_support AS
with tickets as (

    select * from stg_tickets

),

customers as (

    select * from stg_customers

)

select
    tickets.opened_date,
    tickets.topic,
    tickets.priority,
    customers.country_code,
    count(*) as tickets,
    sum(case when tickets.closed_at is null then 1 else 0 end) as open_tickets,
    count(tickets.satisfaction_score) as rated_tickets,
    sum(tickets.satisfaction_score) as satisfaction_total,
    sum(case when tickets.satisfaction_score >= 4 then 1 else 0 end) as satisfied_tickets

from tickets
left join customers on tickets.customer_id = customers.customer_id
group by tickets.opened_date, tickets.topic, tickets.priority, customers.country_code;
