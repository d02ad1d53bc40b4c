import { tellsStories } from './kind-cases.js'

// Minutes: `npm test` tells a tenth of them.
tellsStories('leased', 4000)
tellsStories('coupled', 500)
tellsStories('migration', 500)
