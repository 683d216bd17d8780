-- Marketing: cost per click and per conversion by channel
select
    channel,
    sum(spend) as spend,
    sum(clicks) as clicks,
    sum(conversions) as conversions,
    sum(spend) / nullif(sum(clicks), 0) as cost_per_click,
    sum(spend) / nullif(sum(conversions), 0) as cost_per_conversion
from fct_marketing_daily
where spend_date >= '2024-04-01' and spend_date < '2024-07-01'
group by channel
order by spend desc;
