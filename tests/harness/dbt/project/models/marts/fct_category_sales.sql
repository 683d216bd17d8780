with items as (

    select * from {{ ref('fct_order_items') }}

)

select
    department,
    category_name,
    cast(date_trunc('month', order_date) as date) as order_month,
    sum(quantity) as units,
    sum(net_amount) as net_revenue,
    sum(gross_margin) as gross_margin,
    round(100 * sum(gross_margin) / nullif(sum(net_amount), 0), 1) as margin_pct,
    count(distinct order_id) as orders,
    count(distinct customer_id) as customers

from items
group by department, category_name, cast(date_trunc('month', order_date) as date)
having sum(net_amount) > 0
