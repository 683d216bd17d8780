with payments as (

    select * from {{ ref('stg_payments') }}

),

order_payments as (

    select
        order_id,
        sum(case when payment_method = 'card' then amount else 0 end) as card_amount,
        sum(case when payment_method = 'paypal' then amount else 0 end) as paypal_amount,
        sum(case when payment_method = 'gift_card' then amount else 0 end) as gift_card_amount,
        sum(case when payment_method = 'bank_transfer' then amount else 0 end) as bank_transfer_amount,
        sum(amount) as paid_amount,
        max(paid_at) as last_paid_at

    from payments
    where payment_status = 'settled'
    group by order_id

)

select * from order_payments
