with orders as (

    select * from {{ ref('int_orders_enriched') }}

),

customers as (

    select * from {{ ref('stg_customers') }}

),

countries as (

    select * from {{ ref('stg_countries') }}

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

select * from final
