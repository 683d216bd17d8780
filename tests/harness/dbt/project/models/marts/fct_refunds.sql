with refunds as (

    select * from {{ ref('stg_refunds') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

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

select * from final
