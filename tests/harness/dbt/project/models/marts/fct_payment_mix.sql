with payments as (

    select * from {{ ref('stg_payments') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

)

select
    orders.order_date,
    payments.payment_method,
    payments.payment_status,
    count(*) as payments,
    sum(payments.amount) as amount

from payments
inner join orders on payments.order_id = orders.order_id
group by orders.order_date, payments.payment_method, payments.payment_status
