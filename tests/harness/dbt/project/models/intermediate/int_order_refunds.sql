with refunds as (

    select * from {{ ref('stg_refunds') }}

)

select
    order_id,
    count(*) as refund_count,
    sum(refund_amount) as refunded_amount,
    min(refund_date) as first_refund_date

from refunds
group by 1
