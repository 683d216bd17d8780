-- CRM: revenue by customer tier and quarter, a join of two marts
select
    d.customer_tier,
    date_trunc('quarter', f.order_date) as quarter,
    count(distinct f.customer_id) as customers,
    sum(f.net_amount) as net_revenue,
    round(avg(f.order_total), 2) as average_order_value
from fct_orders f
join dim_customers d on f.customer_id = d.customer_id
where f.order_status = 'completed'
group by d.customer_tier, date_trunc('quarter', f.order_date)
order by quarter, d.customer_tier;
