-- CRM: the 20 best customers of one country
select full_name, email, number_of_orders, lifetime_revenue, most_recent_order_date
from dim_customers
where country_code = 'DE' and number_of_orders > 1
order by lifetime_revenue desc, email
limit 20;
