with source as (

    select * from {{ source('shop', 'payments') }}

),

renamed as (

    select
        id as payment_id,
        order_id,
        method as payment_method,
        status as payment_status,
        -- the provider sends cents
        cast(amount_cents / 100.0 as decimal(12, 2)) as amount,
        paid_at

    from source
    where status <> 'failed'

)

select * from renamed
