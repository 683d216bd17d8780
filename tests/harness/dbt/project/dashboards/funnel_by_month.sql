-- Marketing: the funnel of paid channels by month
select session_month, channel, sessions, conversions, bounce_rate, conversion_rate
from fct_channel_funnel
where channel in ('paid_search', 'social')
order by session_month, channel;
