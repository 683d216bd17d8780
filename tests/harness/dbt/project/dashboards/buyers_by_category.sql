-- Merchandising: distinct buyers and orders by category
select
    category_name,
    count(distinct customer_id) as buyers,
    count(distinct order_id) as orders,
    sum(quantity) as units
from fct_order_items
where order_date >= '2024-01-01'
group by category_name
order by buyers desc;
