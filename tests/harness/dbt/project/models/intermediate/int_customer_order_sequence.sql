with orders as (

    select * from {{ ref('stg_orders') }}

),

sequenced as (

    select
        order_id,
        customer_id,
        order_date,
        row_number() over (partition by customer_id order by ordered_at, order_id) as customer_order_number,
        lag(order_date) over (partition by customer_id order by ordered_at, order_id) as previous_order_date

    from orders
    where order_status <> 'cancelled'

)

select
    *,
    case when customer_order_number = 1 then 'new' else 'returning' end as customer_type,
    datediff(order_date, previous_order_date) as days_since_previous_order

from sequenced
