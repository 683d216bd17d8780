with items as (

    select * from {{ ref('int_order_items_enriched') }}

),

customers as (

    select * from {{ ref('stg_customers') }}

)

select
    items.*,
    customers.country_code,
    customers.signup_channel,
    items.net_amount - items.cost_of_goods as gross_margin

from items
inner join customers on items.customer_id = customers.customer_id
where items.order_status <> 'cancelled'
