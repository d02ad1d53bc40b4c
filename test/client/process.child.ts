/** Leaves token sources behind in every state and closes none; the process must end all the same. */
import { tokenSource } from 'express-service-auth/client'
import { API_DOMAIN, API_KEY, CLAIMS } from './claims.js'

const [state, baseUrl = ''] = process.argv.slice(2)
const options = { core: { baseUrl, apiKey: API_KEY }, apiDomain: API_DOMAIN, claims: CLAIMS }

switch (state) {
  case 'obtained':
    await tokenSource(options).ready()
    break
  case 'failed':
    await tokenSource(options)
      .ready()
      .catch((error: Error) => console.log(error.message))
    break
  case 'under way':
    tokenSource({ ...options, timeoutMs: 300 })
      .ready()
      .catch(() => {})
    break
  case 'waiting for its key':
    tokenSource({ ...options, core: { baseUrl, apiKey: () => new Promise(() => {}) } })
      .ready()
      .catch(() => {})
    break
  default:
    throw new Error(`no such state: ${state}`)
}
console.log('left')
