-- Support: satisfaction by topic with the region, a join of a mart and a staging model
select
    c.region,
    s.topic,
    sum(s.tickets) as tickets,
    sum(s.open_tickets) as open_tickets,
    sum(s.satisfaction_total) / nullif(sum(s.rated_tickets), 0) as average_score
from fct_support s
join stg_countries c on s.country_code = c.country_code
where s.priority in ('high', 'urgent')
group by c.region, s.topic
order by c.region, tickets desc;
