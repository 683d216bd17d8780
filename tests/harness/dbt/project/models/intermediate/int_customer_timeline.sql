with orders as (

    select
        customer_id,
        order_date as event_date,
        'order' as event_type,
        order_id as event_id
    from {{ ref('stg_orders') }}

),

refunds as (

    select
        orders.customer_id,
        refunds.refund_date as event_date,
        'refund' as event_type,
        refunds.refund_id as event_id
    from {{ ref('stg_refunds') }} as refunds
    inner join {{ ref('stg_orders') }} as orders on refunds.order_id = orders.order_id

),

tickets as (

    select
        customer_id,
        opened_date as event_date,
        'ticket' as event_type,
        ticket_id as event_id
    from {{ ref('stg_tickets') }}

)

select * from orders
union all
select * from refunds
union all
select * from tickets
