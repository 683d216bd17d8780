with source as (

    select * from {{ source('shop', 'tickets') }}

),

renamed as (

    select
        id as ticket_id,
        customer_id,
        order_id,
        coalesce(topic, 'other') as topic,
        priority,
        satisfaction as satisfaction_score,
        opened_at,
        closed_at,
        cast(opened_at as date) as opened_date,
        cast(closed_at as date) as closed_date

    from source

)

select * from renamed
