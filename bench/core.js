/* The example's core in memory. Sends its addresses over IPC, and its processor time when asked. */
import { startIdentityCore } from '../example-app/identity-core/identity-core.js'

const [apiKey] = process.argv.slice(2)
const { url, issuer } = await startIdentityCore({ apiKey })
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send({ cpuMicroseconds: user + system })
})
process.on('disconnect', () => process.exit())
process.send({ url, jwksUri: `${issuer}/auth/jwt/jwks.json` })
