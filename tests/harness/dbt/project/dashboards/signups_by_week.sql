-- Growth: sign-ups by week and channel
select
    date_trunc('week', signup_date) as signup_week,
    signup_channel,
    count(*) as signups,
    sum(case when number_of_orders > 0 then 1 else 0 end) as buyers
from dim_customers
where signup_date >= date '2024-01-01'
group by date_trunc('week', signup_date), signup_channel
order by signup_week, signup_channel;
