-- Operations: refunds by reason, this year
select
    refund_reason,
    sum(refunds) as refunds,
    sum(refund_amount) as refund_amount
from fct_refunds
where year(refund_month) = 2024
group by refund_reason
order by refund_amount desc;
