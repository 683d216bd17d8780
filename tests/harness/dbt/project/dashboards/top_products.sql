-- Merchandising: ten best sellers
select product_name, category_name, units_sold, net_revenue, margin_rate
from fct_product_performance
where units_sold > 0
order by net_revenue desc, product_name
limit 10;
