with customers as (

    select * from {{ ref('stg_customers') }}

),

countries as (

    select * from {{ ref('stg_countries') }}

),

customer_orders as (

    select * from {{ ref('int_customer_orders') }}

),

final as (

    select
        customers.customer_id,
        customers.full_name,
        customers.email,
        customers.country_code,
        countries.country_name,
        countries.region,
        customers.signup_channel,
        customers.signup_date,
        customers.marketing_opt_in,
        customer_orders.first_order_date,
        customer_orders.most_recent_order_date,
        coalesce(customer_orders.number_of_orders, 0) as number_of_orders,
        coalesce(customer_orders.lifetime_revenue, 0) as lifetime_revenue,
        case
            when customer_orders.lifetime_revenue >= 1000 then 'gold'
            when customer_orders.lifetime_revenue >= 300 then 'silver'
            when customer_orders.customer_id is not null then 'bronze'
            else 'prospect'
        end as customer_tier

    from customers
    inner join countries on customers.country_code = countries.country_code
    left join customer_orders on customers.customer_id = customer_orders.customer_id
    where not customers.is_deleted

)

select * from final
