-- Finance: settled amount by method and month, with its share of the month
with monthly as (
    select
        date_trunc('month', order_date) as month,
        payment_method,
        sum(amount) as amount
    from fct_payment_mix
    where payment_status = 'settled'
    group by date_trunc('month', order_date), payment_method
)
select
    month,
    payment_method,
    amount,
    amount / sum(amount) over (partition by month) as share_of_month
from monthly
order by month, amount desc;
