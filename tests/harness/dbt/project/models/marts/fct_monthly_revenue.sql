with orders as (

    select * from {{ ref('fct_orders') }}

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

select * from final
