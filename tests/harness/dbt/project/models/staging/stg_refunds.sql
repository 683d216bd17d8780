with source as (

    select * from {{ source('shop', 'refunds') }}

),

renamed as (

    select
        id as refund_id,
        order_id,
        coalesce(reason, 'not given') as refund_reason,
        amount as refund_amount,
        cast(refunded_at as date) as refund_date

    from source

)

select * from renamed
