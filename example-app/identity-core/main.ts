import { fileURLToPath } from 'node:url'
import { apiKeyFrom, integerFrom, portOf, textFrom } from '../environment.js'
import { launch } from '../launch.js'
import { assertPortsFree } from '../listen.js'
import { startIdentityCore, WEEK_SECONDS } from './identity-core.js'
import { usersFromEnvironment } from './users/environment.js'

const DEFAULT_KEYS_FILE = fileURLToPath(
  new URL('../.data/identity-core-keys.json', import.meta.url),
)

await launch('identity-core', async () => {
  await assertPortsFree(['identityCore', 'issuer'])
  const rotation = { min: 1, max: WEEK_SECONDS }
  const core = await startIdentityCore({
    port: portOf('identityCore'),
    issuerPort: portOf('issuer'),
    apiKey: apiKeyFrom('IDENTITY_CORE_API_KEY'),
    rotationSeconds: integerFrom('KEY_ROTATION_SECONDS', WEEK_SECONDS, rotation),
    keysFile: textFrom('IDENTITY_CORE_KEYS_FILE') ?? DEFAULT_KEYS_FILE,
    ...usersFromEnvironment(),
  })
  console.log(`identity-core: ${core.url} (issuer: ${core.issuer})`)
  return core
})
