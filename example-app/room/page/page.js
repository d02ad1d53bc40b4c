import { drawPlot, OUTCOMES } from './plot.js'

const POLL_MS = 1000

const find = (id) => document.getElementById(id)
const form = find('form')
const fields = form.elements

function element(name, text, attributes = {}) {
  const made = document.createElement(name)
  made.textContent = text
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

/** Asks the server of the room; an error of its own is told in its words. */
async function ask(path, body) {
  const request = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  const response = await fetch(path, request)
  const result = await response.json()
  if (!response.ok) throw new Error(result.error)
  return result
}

const tell = (text) => {
  find('told').textContent = text
}

const newKey = () => {
  fields.key.value = `try-${crypto.randomUUID().slice(0, 8)}`
}

/** Does something of a button: tells what came of it, and is not done twice at once. */
async function press(button, work) {
  button.disabled = true
  try {
    await work()
  } catch (error) {
    tell(error.message)
  }
  button.disabled = false
  await refresh()
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void press(form.querySelector('[type=submit]'), async () => {
    const data = new FormData(form)
    const hostile = data.get('hostile')
    showCall(
      await ask('call', {
        caller: data.get('caller'),
        route: data.get('route'),
        permissions: data.getAll('permissions'),
        key: data.get('key'),
        ...(hostile && { hostile }),
      }),
    )
  })
})

find('new-key').addEventListener('click', newKey)

for (const button of document.querySelectorAll('[data-action]')) {
  button.addEventListener('click', () =>
    press(button, async () => {
      const { told, key } = await ask(`do/${button.dataset.action}`, {})
      tell(told)
      if (key === undefined) return
      fields.key.value = key
      fields.caller.value = 'billing'
      fields.route.value = 'write'
      fields.hostile.value = ''
    }),
  )
}

function showCall({ request, token, expected, caller, operator }) {
  const { verdicts, checks } = operator
  const ended = verdicts.find(({ outcome }) => outcome !== 'accepted')
  find('request').textContent = request
  find('token').textContent = `${token.header}\n${token.payload}`
  find('expected').textContent = expected ? `The kit expects ${expected}` : ''
  find('answer').textContent = caller.failure ?? `${caller.head}\n\n${caller.body}`
  find('reason').textContent = ended ? `${ended.outcome}: ${ended.reason}` : 'accepted'
  find('checks').replaceChildren(
    ...checks.map(({ name, state }) => {
      const check = element('li', name, { 'data-state': state })
      if (state === 'failed') check.append(`: ${ended.reason}`)
      return check
    }),
  )
  find('verdicts').textContent = verdicts.map((event) => JSON.stringify(event)).join('\n')
}

function showEvents(events) {
  const rows = events.toReversed().map(({ at, channel, event }) => {
    const row = document.createElement('tr')
    const time = new Date(at).toLocaleTimeString('en-GB')
    row.append(element('td', time), element('td', channel), element('td', JSON.stringify(event)))
    return row
  })
  find('events').replaceChildren(...rows)
}

function fillOnce(select, names) {
  const known = new Set([...select.options].map(({ value }) => value))
  const missing = names.filter((name) => !known.has(name))
  select.append(...missing.map((name) => element('option', name, { value: name })))
}

async function refresh() {
  const state = await ask('state')
  fillOnce(fields.caller, state.callers)
  fillOnce(fields.hostile, state.hostile)
  const button = (name) => document.querySelector(`[data-action=${name}]`)
  button('core').textContent = state.isCoreUp ? 'Stop the core' : 'Start the core'
  button('deny').textContent = state.isBillingDenied ? 'Allow billing' : 'Deny billing'
  if (state.canKill && find('needs-redis')) {
    find('needs-redis').remove()
    button('kill').disabled = false
  }
  drawPlot(find('plot').querySelector('g'), state.decisions, state.now)
  find('totals').textContent = OUTCOMES.map((outcome) => {
    const own = state.decisions.filter((decision) => decision.outcome === outcome)
    return `${own.length} ${outcome}`
  }).join(', ')
  showEvents(state.events)
}

async function keepFresh() {
  try {
    await refresh()
  } catch {
    tell('The room does not answer: has it ended?')
  }
  setTimeout(keepFresh, POLL_MS)
}

newKey()
void keepFresh()
