/** Leaves key sets behind in every state and closes none; the process must end all the same. */
import { remoteKeySet, serviceAuth } from 'express-service-auth'
import { POLICY } from '../../support/issuer/signing-keys.js'

const [state, jwksUri = '', jwks = '{}'] = process.argv.slice(2)
const initial: object = JSON.parse(jwks)

switch (state) {
  case 'fetched':
    await remoteKeySet({ jwksUri }).ready()
    break
  case 'failed':
    await remoteKeySet({ jwksUri })
      .ready()
      .catch((error: Error) => console.log(error.name))
    break
  case 'initial':
    remoteKeySet({ jwksUri, initial })
    break
  case 'under way':
    remoteKeySet({ jwksUri, timeoutMs: 500 })
      .ready()
      .catch(() => {})
    break
  case 'policy':
    await serviceAuth({ ...POLICY, jwksUri }).ready()
    break
  default:
    throw new Error(`no such state: ${state}`)
}
console.log('left')
