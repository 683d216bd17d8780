with customer_orders as (

    select * from {{ ref('int_customer_orders') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

),

final as (

    select
        cast(date_trunc('month', customer_orders.first_order_date) as date) as cohort_month,
        cast(date_trunc('month', orders.order_date) as date) as order_month,
        count(distinct orders.customer_id) as active_customers,
        count(*) as orders

    from orders
    inner join customer_orders on orders.customer_id = customer_orders.customer_id
    where orders.order_status <> 'cancelled'
    group by 1, 2

)

select * from final
