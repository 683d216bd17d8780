with orders as (

    select * from {{ ref('stg_orders') }}

),

order_totals as (

    select * from {{ ref('int_order_totals') }}

),

order_payments as (

    select * from {{ ref('int_order_payments') }}

),

order_refunds as (

    select * from {{ ref('int_order_refunds') }}

),

final as (

    select
        orders.order_id,
        orders.customer_id,
        orders.order_date,
        orders.ordered_at,
        orders.order_status,
        orders.sales_channel,
        orders.coupon_code,
        orders.is_gift,
        orders.shipping_fee,
        coalesce(order_totals.line_count, 0) as line_count,
        coalesce(order_totals.unit_count, 0) as unit_count,
        coalesce(order_totals.gross_amount, 0) as gross_amount,
        coalesce(order_totals.discount_amount, 0) as discount_amount,
        coalesce(order_totals.net_amount, 0) as net_amount,
        coalesce(order_totals.cost_of_goods, 0) as cost_of_goods,
        coalesce(order_payments.paid_amount, 0) as paid_amount,
        coalesce(order_refunds.refunded_amount, 0) as refunded_amount,
        order_refunds.order_id is not null as has_refund

    from orders
    left join order_totals on orders.order_id = order_totals.order_id
    left join order_payments on orders.order_id = order_payments.order_id
    left join order_refunds on orders.order_id = order_refunds.order_id

)

select * from final
