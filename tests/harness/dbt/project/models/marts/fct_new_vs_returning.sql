with sequence as (

    select * from {{ ref('int_customer_order_sequence') }}

),

orders as (

    select * from {{ ref('fct_orders') }}

)

select
    orders.order_month,
    sequence.customer_type,
    count(*) as orders,
    sum(orders.net_amount) as net_revenue

from orders
inner join sequence on orders.order_id = sequence.order_id
group by orders.order_month, sequence.customer_type
