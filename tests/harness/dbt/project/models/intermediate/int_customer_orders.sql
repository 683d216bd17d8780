with orders as (

    select * from {{ ref('int_orders_enriched') }}

),

customer_orders as (

    select
        customer_id,
        min(order_date) as first_order_date,
        max(order_date) as most_recent_order_date,
        count(order_id) as number_of_orders,
        sum(net_amount) as lifetime_revenue,
        sum(refunded_amount) as lifetime_refunds

    from orders
    where order_status <> 'cancelled'
    group by customer_id

)

select * from customer_orders
