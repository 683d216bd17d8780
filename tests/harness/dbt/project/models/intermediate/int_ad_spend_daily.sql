with ad_spend as (

    select * from {{ ref('stg_ad_spend') }}

)

select
    spend_date,
    channel,
    sum(impressions) as impressions,
    sum(clicks) as clicks,
    sum(spend) as spend

from ad_spend
group by spend_date, channel
