with source as (

    select * from {{ source('shop', 'web_sessions') }}

),

renamed as (

    select
        id as session_id,
        customer_id,
        coalesce(channel, 'direct') as channel,
        device,
        landing_page,
        page_views,
        order_id,
        case when order_id is not null then 1 else 0 end as is_converted,
        case when page_views <= 1 then 1 else 0 end as is_bounce,
        started_at,
        cast(started_at as date) as session_date

    from source

)

select * from renamed
