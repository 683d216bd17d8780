with items as (

    select * from {{ ref('fct_order_items') }}

)

select
    order_date,
    sales_channel,
    country_code,
    category_name,
    count(distinct order_id) as orders,
    sum(quantity) as units,
    sum(gross_amount) as gross_revenue,
    sum(discount_amount) as discounts,
    sum(net_amount) as net_revenue,
    sum(gross_margin) as gross_margin

from items
group by order_date, sales_channel, country_code, category_name
