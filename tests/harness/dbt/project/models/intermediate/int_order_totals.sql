with items as (

    select * from {{ ref('int_order_items_enriched') }}

)

select
    order_id,
    count(*) as line_count,
    sum(quantity) as unit_count,
    count(distinct category_name) as category_count,
    sum(gross_amount) as gross_amount,
    sum(discount_amount) as discount_amount,
    sum(net_amount) as net_amount,
    sum(cost_of_goods) as cost_of_goods

from items
group by order_id
