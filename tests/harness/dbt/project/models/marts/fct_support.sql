with tickets as (

    select * from {{ ref('stg_tickets') }}

),

customers as (

    select * from {{ ref('stg_customers') }}

)

select
    tickets.opened_date,
    tickets.topic,
    tickets.priority,
    customers.country_code,
    count(*) as tickets,
    sum(case when tickets.closed_at is null then 1 else 0 end) as open_tickets,
    count(tickets.satisfaction_score) as rated_tickets,
    sum(tickets.satisfaction_score) as satisfaction_total,
    sum(case when tickets.satisfaction_score >= 4 then 1 else 0 end) as satisfied_tickets

from tickets
left join customers on tickets.customer_id = customers.customer_id
group by tickets.opened_date, tickets.topic, tickets.priority, customers.country_code
