-- CRM: customers by tier and region
select
    region,
    customer_tier,
    count(*) as customers,
    sum(lifetime_revenue) as lifetime_revenue
from dim_customers
where marketing_opt_in
group by region, customer_tier
order by region, customer_tier;
