with sessions as (

    select * from {{ ref('stg_web_sessions') }}

)

select
    session_date,
    channel,
    device,
    count(*) as sessions,
    count(distinct customer_id) as known_visitors,
    sum(page_views) as page_views,
    sum(is_bounce) as bounces,
    sum(is_converted) as conversions

from sessions
group by session_date, channel, device
