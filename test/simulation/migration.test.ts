import { provesStories, tellsStories } from './kind-cases.js'

tellsStories('migration', 50)

provesStories('migration', [
  'a lost call is sent again without a look',
  'whom the job blames has failed',
])
