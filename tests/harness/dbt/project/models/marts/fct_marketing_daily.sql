with sessions as (

    select
        session_date,
        channel,
        sum(sessions) as sessions,
        sum(conversions) as conversions
    from {{ ref('int_sessions_daily') }}
    group by session_date, channel

),

ad_spend as (

    select * from {{ ref('int_ad_spend_daily') }}

),

final as (

    select
        ad_spend.spend_date,
        ad_spend.channel,
        ad_spend.impressions,
        ad_spend.clicks,
        ad_spend.spend,
        coalesce(sessions.sessions, 0) as sessions,
        coalesce(sessions.conversions, 0) as conversions,
        ad_spend.spend / nullif(sessions.conversions, 0) as cost_per_conversion

    from ad_spend
    left join sessions
        on ad_spend.spend_date = sessions.session_date
        and ad_spend.channel = sessions.channel

)

select * from final
