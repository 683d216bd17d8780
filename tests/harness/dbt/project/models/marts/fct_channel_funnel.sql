with daily as (

    select * from {{ ref('int_sessions_daily') }}

)

select
    cast(date_trunc('month', session_date) as date) as session_month,
    channel,
    sum(sessions) as sessions,
    sum(page_views) as page_views,
    sum(bounces) as bounces,
    sum(conversions) as conversions,
    sum(bounces) / sum(sessions) as bounce_rate,
    sum(conversions) / nullif(sum(sessions), 0) as conversion_rate

from daily
group by 1, 2
